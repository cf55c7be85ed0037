import Millrace
import Ported

/// `ported-worker mails`, `messages` or `welcomes`: one of the three workers, which prints what it would send.
@main
enum Main {
    static func main() async throws {
        let worker: Worker
        switch CommandLine.arguments.dropFirst().first {
        case "messages":
            worker = workerOfMessages(
                on: .environment, send: { print("to \($0.to): \($0.text)") },
                failed: { print("\($0) failed, run \($1): \($2)") })
        case "welcomes":
            worker = workerOfWelcomes(on: .environment) { address, subject in
                print("to \(address): \(subject)")
                return "mail-\(address)"
            }
        default:
            worker = try workerOfMails(
                on: .environment, send: { print("to \($0.to): \($0.subject)") }, tidy: { print("tidied up") })
        }
        try await worker.run()
    }
}
