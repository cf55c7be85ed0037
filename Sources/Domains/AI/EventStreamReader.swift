/// Reads server-sent events from pieces of a body: of each event its name and its data, lines joined. Pure.
struct EventStreamReader: Sendable {
    struct Event: Sendable, Equatable {
        var name: String?
        var data: String
    }

    struct TooLong: Error {}

    private var line: [UInt8] = []
    private var name: String?
    private var data: [String] = []
    private var held = 0
    private let most: Int

    /// - Parameter most: The bytes of one event.
    init(most: Int = 1 << 20) { self.most = most }

    /// The events that end in these bytes.
    mutating func take(_ bytes: [UInt8]) throws(TooLong) -> [Event] {
        var events: [Event] = []
        for byte in bytes {
            guard byte == UInt8(ascii: "\n") else {
                line.append(byte)
                held += 1
                if held > most { throw TooLong() }
                continue
            }
            if let event = endLine() { events.append(event) }
        }
        return events
    }

    private mutating func endLine() -> Event? {
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        defer { line = [] }
        if line.isEmpty {
            defer { (name, data, held) = (nil, [], 0) }
            return data.isEmpty ? nil : Event(name: name, data: data.joined(separator: "\n"))
        }
        let text = String(decoding: line, as: UTF8.self)
        guard let colon = text.firstIndex(of: ":") else { return nil }
        var value = text[text.index(after: colon)...]
        if value.first == " " { value.removeFirst() }
        switch text[..<colon] {
        case "event": name = String(value)
        case "data": data.append(String(value))
        default: break  // a comment, an id, a retry
        }
        return nil
    }
}
