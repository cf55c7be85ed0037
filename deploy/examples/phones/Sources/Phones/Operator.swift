import Foundation

/// What happens around the phones. A line that begins with @ asks the driver, phones.py, to do it; a line answers.
package enum Operator {
    /// The gateway and the worker end at once, as in a power cut.
    package static func kill() async throws { try await ask("kill") }

    /// They run again.
    package static func start() async throws { try await ask("start") }

    /// The next check-in of this person is due now: the driver moves its time in the database, as an operator could.
    package static func makeDue(_ person: String) async throws { try await ask("due \(person)") }

    private static func ask(_ what: String) async throws {
        say("@\(what)")
        // Reading blocks, so it has a thread of its own.
        let answer = await withCheckedContinuation { (continuation: CheckedContinuation<String?, Never>) in
            Thread.detachNewThread { continuation.resume(returning: readLine()) }
        }
        guard answer == "done" else { throw Wrong("\(what): \(answer ?? "nobody answers")") }
    }
}
