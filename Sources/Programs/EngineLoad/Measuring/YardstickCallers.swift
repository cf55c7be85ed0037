import CYardstick
import CommandKit
import Glibc
import LoadKit
import Threads

/// Callers with persistent connections, where the hand-written enqueue and a call of ours are prepared and have been called several times
/// before the measurement. The two take short turns, so that everything else on the machine affects both alike.
final class YardstickCallers: Sendable {
    enum Statement: Int32 {
        case byHand
        case call
    }

    struct Call: Sendable {
        let text: String
        let values: [String]

        /// One plain job to a call.
        static func enqueue(_ kind: String, queue: String) -> Call {
            Call(text: "select millrace.enqueue($1::text, $2::jsonb, $3::text)", values: [kind, "{\"n\": 1}", queue])
        }
    }

    private let yardstick: Yardstick
    /// Used by one turn at a time: each turn is awaited before the next begins.
    private nonisolated(unsafe) let handle: OpaquePointer

    private init(_ handle: OpaquePointer, of yardstick: Yardstick) {
        (self.handle, self.yardstick) = (handle, yardstick)
    }

    deinit { yardstick_callers_close(handle) }

    static func open(_ count: Int, of yardstick: Yardstick, line: Yardstick.Line, call: Call) async throws
        -> YardstickCallers
    {
        let values = ["\(line.kind)", "\(line.queue)", "\(line.lane)", "{\"n\": 1}"]
        let callers = await Thread.run(name: "yardstick") {
            withCopies(of: values) { byHand in
                withCopies(of: [call.text] + call.values) { words in
                    let statements = [
                        yardstick_statement(text: yardstick_enqueue, values: byHand, count: Int32(values.count)),
                        yardstick_statement(text: words[0], values: words + 1, count: Int32(call.values.count)),
                    ]
                    let handle = yardstick_callers_open(
                        yardstick.location, statements, Int32(statements.count), Int32(count))
                    return handle.map { YardstickCallers($0, of: yardstick) }
                }
            }
        }
        guard let callers else { throw Failure("there is no memory for \(Humane.count(count, "caller"))") }
        return callers
    }

    /// All callers call again and again for this span.
    /// - Parameter afterCall: one of them makes a call before, which wakes a worker.
    func turn(_ statement: Statement, for span: Duration, afterCall: Bool = false) async throws -> Yardstick.Result {
        try await yardstick.run { [self] _ in
            yardstick_callers_turn(
                handle, statement.rawValue, afterCall ? Statement.call.rawValue : -1, span / .seconds(1))
        }
    }
}

private func withCopies<T>(of strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>>) -> T) -> T {
    let copies = strings.compactMap { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return body(copies.map { UnsafePointer($0) })
}
