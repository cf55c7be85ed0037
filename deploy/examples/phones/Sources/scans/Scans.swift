import Foundation
import MillraceApp
import Phones

/// A phone that sends large files. `scans PERSON FILE…` hands them in, where they do not wait already, and ends when all of them are
/// registered. It may be killed and started again at any time. deploy/checks/uploads does so.
@main struct Scans {
    static func main() async {
        await play {
            let (person, files) = (CommandLine.arguments[1], CommandLine.arguments.dropFirst(2))
            let phone = try await World().phone(person, "phone", piece: 1 << 20)
            for file in files {
                let url = URL(fileURLWithPath: file)
                guard let id = UUID(uuidString: url.lastPathComponent) else {
                    throw Wrong("\(file) is not named by an id")
                }
                let isDone = (try? await phone.app.documents.document(id)) != nil
                let waits = await phone.queue.pending.contains { $0.id == id }
                guard !isDone, !waits else { continue }
                var details = DocumentDetails(title: "A scan")
                details.id = id
                // A gateway that is away keeps it waiting.
                _ = try await phone.app.documents.submit(
                    DocumentFile(contentsOf: url, mimeType: "application/pdf", name: "scan.pdf"), details)
            }
            for outcome in try await phone.tell() where outcome.word == .refused {
                throw Wrong("refused: \(outcome.error.map { "\($0)" } ?? "?")")
            }
            say("\(person) has sent \(files.count)")
        }
    }
}
