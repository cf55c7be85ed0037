import Foundation
import Postgres
import TestSupport
import Testing

/// The real executable stores blobs, and is killed at it.
@Suite struct BlobProcessTests {
    @Test(arguments: ["postgres", "dir"]) func `a put that is killed in the middle leaves nothing to be seen`(
        _ kind: String
    ) async throws {
        try await withDatabase { database in
            let directory = FileManager.default.temporaryDirectory.appending(path: "blobs-\(UUID().uuidString)").path
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let place = kind == "dir" ? "dir:\(directory)/blobs" : kind
            let connection = try await database.connect()
            let environment = ["MILLRACE_BLOBS": place]
            // A pipe gives what is written to it, and then holds the put up.
            let fifo = directory + "/fifo"
            #expect(mkfifo(fifo, 0o600) == 0)
            let put = try MillraceProcess(["blobs", "put", fifo], database: database.url, environment: environment)
            let feeder = Process()
            feeder.executableURL = URL(filePath: "/bin/sh")
            feeder.arguments = ["-c", "exec 3>'\(fifo)'; head -c 3000000 /dev/zero >&3; exec sleep 600"]
            try feeder.run()
            defer { feeder.terminate() }
            try await eventually("some of it is written; it says: \(put.output)") {
                if kind == "postgres" {
                    return try await connection.int("select count(*) from millrace.blob_piece") > 5
                }
                let files = (try? FileManager.default.contentsOfDirectory(atPath: directory + "/blobs/tmp")) ?? []
                guard let file = files.first else { return false }
                var info = stat()
                return stat(directory + "/blobs/tmp/" + file, &info) == 0 && info.st_size > 1_000_000
            }
            put.signal(SIGKILL)
            #expect(try await put.ended() == -SIGKILL)
            let list = try MillraceProcess(["blobs", "list"], database: database.url, environment: environment)
            #expect(try await list.ended() == 0)
            #expect(list.output.contains("no blobs"))
            #expect(try await connection.int("select count(*) from millrace.blob") == 0)
            // What it left goes with a sweep, once it is old.
            try await connection.run("update millrace.blob_upload set at = at - interval '2 days'")
            if kind == "dir" {
                let touch = Process()
                touch.executableURL = URL(filePath: "/bin/sh")
                touch.arguments = ["-c", "touch -d '2 days ago' '\(directory)'/blobs/tmp/*"]
                try touch.run()
                try await eventually("touched") { !touch.isRunning }
            }
            let sweep = try MillraceProcess(["blobs", "sweep"], database: database.url, environment: environment)
            #expect(try await sweep.ended() == 0)
            #expect(sweep.output.contains("remains of broken-off puts: 1"), "\(sweep.output)")
            #expect(try await connection.int("select count(*) from millrace.blob_piece") == 0)
            await connection.close()
        }
    }

    @Test func `a file goes in and comes out, and events as well`() async throws {
        try await withDatabase { database in
            let directory = FileManager.default.temporaryDirectory.appending(path: "blobs-\(UUID().uuidString)").path
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: directory) }
            try Data(repeating: 7, count: 700_000).write(to: URL(filePath: directory + "/in"))
            func run(_ arguments: String...) async throws -> (code: Int32, output: String) {
                let process = try MillraceProcess(arguments, database: database.url)
                return (try await process.ended(), process.output.trimmingCharacters(in: .whitespacesAndNewlines))
            }
            let put = try await run("blobs", "put", directory + "/in")
            #expect(put.code == 0 && put.output.count == 64)
            let out = try await run("blobs", "get", put.output, "--verify", "-o", directory + "/out")
            #expect(out.code == 0, "\(out.output)")
            #expect(FileManager.default.contentsEqual(atPath: directory + "/in", andPath: directory + "/out"))
            #expect(try await run("blobs", "verify").output == "1 blobs checked, 0 not as they were put")
            #expect(try await run("blobs", "get", String(repeating: "0", count: 64)).code == 3)
            let s3 = try MillraceProcess(
                ["blobs", "list"], database: database.url, environment: ["MILLRACE_BLOBS": "s3://bucket"])
            #expect(try await s3.ended() == 2)
            #expect(s3.output.contains("dir:<absolute path> or postgres; this version knows no s3"))

            let id = "0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e"
            #expect(try await run("events", "publish", "a.b", "/t", #"{"n": 1}"#, "--id", id).output == id)
            #expect(try await run("events", "publish", "a.b", "/t", #"{"n": 2}"#, "--id", id).code == 4)
            #expect(try await run("events", "publish", "a b", "/t", "1").code == 2)
            #expect(try await run("events", "tail").output.hasPrefix("1 {"))
            #expect(try await run("events", "tail", "--since", "1").output == "")
            #expect(try await run("events", "show", id, "--json").output.contains(#""seq": 1"#))
            #expect(try await run("events", "list").output.contains("a.b"))
            #expect(try await run("events", "show", "0198c1f2-7a3e-7000-8000-5a1f2b3c4d5f").code == 3)
        }
    }
}
