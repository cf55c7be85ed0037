import Listeners

/// What a client asks of a stream, besides its path.
struct StreamQuery: Sendable {
    /// nil: from now on.
    let since: Int64?
    /// nil: a stream; otherwise a long poll.
    let wait: Duration?
    /// nil: all.
    let topics: [String]?

    init(_ request: Request) throws(ErrorAnswer) {
        let header = request.headers["Last-Event-ID"].flatMap { $0.isEmpty ? nil : $0 }
        if let header {
            since = try Self.position(header, "Last-Event-ID")
        } else {
            since = try Self.position(request.query("since"), "since")
        }
        wait = try Self.seconds(request.query("wait"))
        topics = try Self.names(request.query("topics"))
    }

    private static func seconds(_ text: String?) throws(ErrorAnswer) -> Duration? {
        guard let text else { return nil }
        guard let seconds = Int(text), (1...60).contains(seconds) else {
            throw ErrorAnswer(.invalid, "wait is not a number of seconds from 1 to 60", field: "wait")
        }
        return .seconds(seconds)
    }

    private static func names(_ text: String?) throws(ErrorAnswer) -> [String]? {
        guard let text else { return nil }
        let names = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard (1...32).contains(names.count), names.allSatisfy({ (1...40).contains($0.utf8.count) }) else {
            throw ErrorAnswer(
                .invalid, "topics is not a list of names", field: "topics",
                hint: "give names separated by commas, as in topics=documents,alarms, or leave it out for all")
        }
        return names
    }

    private static func position(_ text: String?, _ field: String) throws(ErrorAnswer) -> Int64? {
        guard let text else { return nil }
        guard let position = Int64(text), position >= 0 else {
            throw ErrorAnswer(
                .invalid, "\(field) is not the position of an event", field: field,
                hint: "give the id of the last event that was processed, or 0 for everything that is kept")
        }
        return position
    }
}
