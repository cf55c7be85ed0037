import Foundation

/// An event of a stream, as `text/event-stream` carries it.
struct ServerEvent: Sendable, Hashable {
    var id: String?
    var name = "message"
    var data = ""
}

/// Reads `text/event-stream`, however its bytes are cut.
struct ServerEventParser: Sendable {
    /// An event may be longer than any change that the gateway sends, and no longer: a server that never ends one must not fill the memory.
    static let longestEvent = 1 << 20

    /// What the server said a client should wait before it connects again.
    private(set) var retry: Duration?
    private var line: [UInt8] = []
    private var held = 0
    private var isAfterReturn = false
    private var event = ServerEvent()
    private var hasData = false
    private var isFirstLine = true

    mutating func read(_ bytes: Data) throws -> [ServerEvent] {
        var events: [ServerEvent] = []
        for byte in bytes {
            defer { isAfterReturn = byte == 0x0D }
            switch byte {
            case 0x0A where isAfterReturn: break
            case 0x0A, 0x0D:
                if let event = end() { events.append(event) }
            default:
                guard held < Self.longestEvent else {
                    throw AppError(.unknown, "an event of the stream is too long")
                }
                line.append(byte)
                held += 1
            }
        }
        return events
    }

    /// A line is complete; an empty one completes the event.
    private mutating func end() -> ServerEvent? {
        defer { line.removeAll(keepingCapacity: true) }
        if isFirstLine {
            isFirstLine = false
            if line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
        }
        guard !line.isEmpty else {
            defer { (event, hasData, held) = (ServerEvent(), false, 0) }
            return hasData ? event : nil
        }
        let colon = line.firstIndex(of: 0x3A)
        let name = String(decoding: line[..<(colon ?? line.endIndex)], as: UTF8.self)
        var value = colon.map { line[($0 + 1)...] } ?? []
        if value.first == 0x20 { value.removeFirst() }
        let text = String(decoding: value, as: UTF8.self)
        switch name {
        case "id": if !text.contains("\0") { event.id = text }
        case "event": event.name = text
        case "data":
            event.data += hasData ? "\n" + text : text
            hasData = true
        case "retry": if let millis = Int64(text), millis >= 0 { retry = .milliseconds(min(millis, 60_000)) }
        default: break  // a comment, or a field of a later time
        }
        return nil
    }
}
