import CommandKit
import FoundationEssentials
import Glibc
import Threads

/// A program of somebody else's making that follows some of the streams; see deploy/checks/streams.
struct OtherClient: Sendable {
    private let pid: pid_t
    private let directory: String

    init(_ program: String, _ world: StreamWorld, people: Int) throws {
        directory = try Scratch.directory("streams-client")
        try (0..<people).map { "\($0) \(world.token($0))\n" }.joined()
            .write(toFile: directory + "/clients", atomically: true, encoding: .utf8)
        guard
            let pid = OwnProgram.spawn(
                ["http://127.0.0.1:\(world.port)", directory], environment: ["PATH": "/usr/bin:/bin"], instead: program)
        else { throw Failure("\(program) cannot be started") }
        self.pid = pid
        LoadGround.atEnd { kill(pid, SIGKILL) }
    }

    /// What it has seen.
    func stop() async throws -> [StreamFleet.Seen] {
        // What has just arrived at others arrives at it, too.
        try await Task.sleep(for: .seconds(3))
        kill(pid, SIGTERM)
        let pid = pid
        let status = await Thread.run(name: "other-client") {
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            return status
        }
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
