import Glibc
import Testing

@testable import Clusters

@Suite struct `locating Postgres` {
    /// A directory that looks like an installation of the given version.
    private func install(_ directory: String, answering version: String) async throws {
        try await run("mkdir", ["-p", directory])
        let script = "printf '#!/bin/sh\\necho \"postgres (PostgreSQL) \(version)\"\\n'"
        for program in Cluster.Binaries.programs {
            try await run("sh", ["-c", "\(script) > \(directory)/\(program) && chmod 755 \(directory)/\(program)"])
        }
    }

    @Test func `prefers what the environment names`() async throws {
        try await withDirectory { directory in
            try await install("\(directory)/mine", answering: "16.3")
            try await install("\(directory)/debian/17/bin", answering: "17.1")
            let found = try Cluster.Binaries.locate(
                environment: ["MILLRACE_POSTGRES_BIN": "\(directory)/mine"], debian: "\(directory)/debian")
            #expect(found == .init(directory: "\(directory)/mine", major: 16))
        }
    }

    @Test func `takes the newest that is complete`() async throws {
        try await withDirectory { directory in
            for major in [9, 13, 15, 16] {
                try await install("\(directory)/debian/\(major)/bin", answering: "\(major).1")
            }
            try await run("mkdir", ["-p", "\(directory)/debian/18/bin"])  // clients only
            let found = try Cluster.Binaries.locate(environment: [:], debian: "\(directory)/debian")
            #expect(found == .init(directory: "\(directory)/debian/16/bin", major: 16))
        }
    }

    @Test func `looks through the PATH last`() async throws {
        try await withDirectory { directory in
            try await install("\(directory)/opt", answering: "14.0")
            let found = try Cluster.Binaries.locate(
                environment: ["PATH": "/nowhere:\(directory)/opt"], debian: "\(directory)/debian")
            #expect(found == .init(directory: "\(directory)/opt", major: 14))
        }
    }

    @Test func `refuses a wrong directory, one too old, and nothing at all`() async throws {
        try await withDirectory { directory in
            try await install("\(directory)/old", answering: "13.9")
            func outcome(_ environment: [String: String]) -> ClusterError? {
                do throws(ClusterError) {
                    _ = try Cluster.Binaries.locate(environment: environment, debian: "\(directory)/debian")
                    return nil
                } catch {
                    return error
                }
            }
            let reason = "there is no program postgres"
            #expect(
                outcome(["MILLRACE_POSTGRES_BIN": directory]) == .unusableBinaries(directory: directory, reason: reason)
            )
            #expect(
                outcome(["MILLRACE_POSTGRES_BIN": "\(directory)/old"])
                    == .tooOld(directory: "\(directory)/old", major: 13))
            #expect(outcome([:]) == .noPostgres)
        }
    }
}

@Suite struct `a child` {
    @Test func `tells how it ended and what it said, the end of it`() async throws {
        let child = try await run("sh", ["-c", "echo out; echo err >&2; exit 3"])
        #expect(child.ending == .exited(3))
        #expect(child.lines == ["out", "err"])
        let long = try await run("sh", ["-c", "yes 0123456789 | head -n 100000; echo last"])
        #expect(long.output.utf8.count == 65_536)
        #expect(long.lines.last == "last")
        #expect(try await run("sh", ["-c", "kill -9 $$"]).ending == .signalled(SIGKILL))
    }

    @Test func `past its deadline is ended with all it started`() async throws {
        let limit = WorkDeadline(.milliseconds(100))
        let begin = ContinuousClock.now
        let child = try await onOwnThread(within: limit) { () throws(ClusterError) in
            try ProgramRun.run("sh", ["-c", "sleep 600 & sleep 600"], within: limit)
        }
        #expect(child.ending == .stopped)
        #expect(ContinuousClock.now - begin < .seconds(300))
    }

    @Test func `that keeps its output open in the background delays nobody`() async throws {
        let begin = ContinuousClock.now
        let child = try await run("sh", ["-c", "sleep 600 & echo done; echo $!"])
        #expect(child.succeeded)
        #expect(ContinuousClock.now - begin < .seconds(300))
        kill(try #require(child.lines.last.flatMap { pid_t($0) }), SIGKILL)
    }

    @Test func `that does not exist is an error with its name`() async throws {
        await #expect(throws: ClusterError.missingTool(name: "/nowhere/program")) {
            try await run("/nowhere/program", [])
        }
    }
}
