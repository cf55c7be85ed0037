/// Reads server-sent events from pieces of a body: of each event its name and its data, lines joined. Pure. It reads as `ServerEventParser` of
/// `MillraceApp` does, which imports no other room.
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
    private var isAfterReturn = false
    private var isFirstLine = true
    private let most: Int

    /// - Parameter most: The bytes of one event.
    init(most: Int = 1 << 20) { self.most = most }

    /// The events that end in these bytes.
    mutating func take(_ bytes: [UInt8]) throws(TooLong) -> [Event] {
        var events: [Event] = []
        for byte in bytes {
            defer { isAfterReturn = byte == UInt8(ascii: "\r") }
            switch byte {
            case UInt8(ascii: "\n") where isAfterReturn: break
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                if let event = endLine() { events.append(event) }
            default:
                line.append(byte)
                held += 1
                if held > most { throw TooLong() }
            }
        }
        return events
    }

    private mutating func endLine() -> Event? {
        defer { line = [] }
        if isFirstLine {
            isFirstLine = false
            if line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
        }
        if line.isEmpty {
            defer { (name, data, held) = (nil, [], 0) }
            return data.isEmpty ? nil : Event(name: name, data: data.joined(separator: "\n"))
        }
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        var value = line[colon...].dropFirst()
        if value.first == UInt8(ascii: " ") { value.removeFirst() }
        switch String(decoding: line[..<colon], as: UTF8.self) {
        case "event": name = String(decoding: value, as: UTF8.self)
        case "data": data.append(String(decoding: value, as: UTF8.self))
        default: break  // a comment, an id, a retry
        }
        return nil
    }
}
