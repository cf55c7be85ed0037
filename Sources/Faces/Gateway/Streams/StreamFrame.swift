import JSON

/// An event with an id and a JSON object, encoded once.
struct StreamPiece: Sendable {
    let id: Int64
    /// As it is sent to streams.
    let frame: [UInt8]
    /// Where the JSON object stands in the frame.
    private let object: Range<Int>

    /// For long polls.
    var json: ArraySlice<UInt8> { frame[object] }

    /// - Parameter write: appends the object, on one line.
    init(id: Int64, event: String, _ write: (inout [UInt8]) -> Void) {
        self.id = id
        var frame = Array("id: \(id)\nevent: \(event)\ndata: ".utf8)
        let start = frame.count
        write(&frame)
        object = start..<frame.count
        frame += "\n\n".utf8
        self.frame = frame
    }
}

/// The parts of a stream of server-sent events that are not changes.
enum StreamFrame {
    static func ready(at position: Int64) -> [UInt8] {
        Array("retry: 2000\nid: \(position)\nevent: ready\ndata: {\"position\":\(position)}\n\n".utf8)
    }

    static func reset(to position: Int64) -> [UInt8] {
        Array("id: \(position)\nevent: reset\ndata: {\"position\":\(position)}\n\n".utf8)
    }

    static func end(_ reason: String) -> [UInt8] {
        Array("event: end\ndata: {\"reason\":\(JSONText.quoted(reason))}\n\n".utf8)
    }

    /// A comment. No empty line follows it: some readers take that for an event.
    static let alive = Array(": alive\n".utf8)
}

/// Why a reader gets nothing more.
enum StreamEnd: Sendable, Equatable {
    /// The token's time is over.
    case expired
    /// It did not read.
    case cut
    /// The gateway stops. Clients come again.
    case closing
    /// The time of a long poll is over.
    case waited
    /// What it followed has ended.
    case over(String)
}
