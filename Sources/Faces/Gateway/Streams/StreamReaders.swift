import Listeners
import Synchronization
import Threads

/// Somebody who gets events as they come. None of the calls waits.
protocol StreamReader: Sendable {
    /// False: it cannot take it, and gets nothing more.
    func take(_ piece: StreamPiece) -> Bool
    /// False: as with `take`.
    func beat() -> Bool
    func end(_ end: StreamEnd)
}

/// An open stream.
final class EventStream: StreamReader {
    /// What may wait for a client that does not read.
    struct Limits: Sendable {
        var pieces = 256
        var bytes = 262_144
    }

    private let writer: BodyWriter
    private let limits: Limits
    private let ended = Wakeup()

    init(_ writer: BodyWriter, _ limits: Limits) {
        self.writer = writer
        self.limits = limits
        writer.whenClosing { [ended] in ended.fire() }
    }

    func take(_ piece: StreamPiece) -> Bool { push(piece.frame) }

    func beat() -> Bool { push(StreamFrame.alive) }

    func push(_ frame: [UInt8]) -> Bool { writer.push(frame, pieces: limits.pieces, bytes: limits.bytes) }

    func end(_ end: StreamEnd) {
        switch end {
        case .expired: _ = push(StreamFrame.end("expired"))
        case .over(let reason): _ = push(StreamFrame.end(reason))
        case .cut: writer.cut()
        case .closing, .waited: break
        }
        ended.fire()
    }

    /// Until it has ended, or the client has gone.
    func wait() async { await ended.wait() }
}

/// A request that waits for the first events.
final class LongPoll: StreamReader {
    private let most: Int
    private let found = Mutex<[StreamPiece]>([])
    private let ended = Wakeup()

    init(_ request: Request, most: Int) {
        self.most = most
        request.whenClosing { [ended] in ended.fire() }
    }

    var pieces: [StreamPiece] { found.withLock { $0 } }

    func take(_ piece: StreamPiece) -> Bool {
        let isTaken = found.withLock { found in
            guard found.count < most else { return false }
            found.append(piece)
            return true
        }
        ended.fire()
        return isTaken
    }

    func beat() -> Bool { true }

    func end(_ end: StreamEnd) { ended.fire() }

    func wait() async { await ended.wait() }
}

extension LongPoll {
    /// What it found, and up to where nothing is missing.
    static func answer(_ pieces: [StreamPiece], _ position: Int64, isReset: Bool) -> Response {
        var body = Array(#"{"events":["#.utf8)
        for (place, piece) in pieces.enumerated() {
            if place > 0 { body.append(UInt8(ascii: ",")) }
            body += piece.json
        }
        body += #"],"position":\#(position),"reset":\#(isReset)}"#.utf8
        body.append(UInt8(ascii: "\n"))
        return Response(headers: [Header("Content-Type", "application/json")], body: .bytes(body))
    }
}

extension Response {
    /// For HEAD: nothing is waited for, and nobody knows how long the body would be.
    static func head(of query: StreamQuery) -> Response {
        Response(
            headers: query.wait == nil ? EventStream.headers : [Header("Content-Type", "application/json")],
            body: .stream { _ in })
    }
}

extension EventStream {
    static let headers = [
        Header("Content-Type", "text/event-stream"), Header("Cache-Control", "no-store"),
        Header("X-Accel-Buffering", "no"),
    ]
}
