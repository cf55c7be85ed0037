import CommandKit
import FoundationEssentials
import LoadKit

/// A program of somebody else's making that follows some of the streams; see deploy/checks/streams.
struct OtherClient: Sendable {
    private let process: StartedProcess
    private let directory: String

    init(_ program: String, _ world: StreamWorld, people: Int) throws {
        directory = try Scratch.directory("streams-client")
        try (0..<people).map { "\($0) \(world.token($0))\n" }.joined()
            .write(toFile: directory + "/clients", atomically: true, encoding: .utf8)
        process = try StartedProcess(
            program, ["http://127.0.0.1:\(world.port)", directory], environment: ["PATH": "/usr/bin:/bin"],
            program: program)
    }

    /// What it has seen.
    func stop() async throws -> [StreamFleet.Seen] {
        // What has just arrived at others arrives at it, too.
        try await Task.sleep(for: .seconds(3))
        let status = await process.end()
        guard status == 0 else { throw Failure("the other client ended with status \(status)") }
        let text = try String(contentsOfFile: directory + "/seen", encoding: .utf8)
        return text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count > 1, let person = Int(words[0]) else { return nil }
            return StreamFleet.Seen(
                person: person, start: Int64(words[1]), seqs: words.dropFirst(2).compactMap { Int64($0) })
        }
    }
}
