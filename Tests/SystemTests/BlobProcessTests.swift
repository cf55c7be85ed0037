import Fakes
import Foundation
import Postgres
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The real executable stores blobs, and is killed meanwhile.
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
            // A pipe delivers what is written to it, and then blocks the put.
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
            // A sweep removes what it left, once it is old.
            try await connection.run("update millrace.blob_upload set at = at - interval '2 days'")
            if kind == "dir" {
                try await Program.check("sh", ["-c", "touch -d '2 days ago' '\(directory)'/blobs/tmp/*"])
            }
            let sweep = try MillraceProcess(["blobs", "sweep"], database: database.url, environment: environment)
            #expect(try await sweep.ended() == 0)
            #expect(sweep.output.contains("remains of interrupted puts: 1"), "\(sweep.output)")
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
            #expect(try await run("blobs", "put", directory + "/in", "--role", "shop", "--tenant", "acme").code == 0)
            let owner = try await database.connect()
            #expect(try await owner.column("select owner || ' ' || tenant from millrace.blob_grant") == ["shop acme"])
            await owner.close()
            let out = try await run("blobs", "get", put.output, "--verify", "-o", directory + "/out")
            #expect(out.code == 0, "\(out.output)")
            #expect(FileManager.default.contentsEqual(atPath: directory + "/in", andPath: directory + "/out"))
            #expect(try await run("blobs", "verify").output == "1 blobs checked, 0 damaged or missing")
            #expect(try await run("blobs", "get", String(repeating: "0", count: 64)).code == 3)
            let s3 = try MillraceProcess(
                ["blobs", "list"], database: database.url, environment: ["MILLRACE_BLOBS": "s3://bucket"])
            #expect(try await s3.ended() == 2)
            #expect(s3.output.contains("MILLRACE_BLOBS is in S3: AWS_ACCESS_KEY_ID is needed too"))

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

    @Test func `a link puts one file and a link gets one file, through a worker whose blobs lie in S3`()
        async throws
    {
        try await withDatabase { database in
            let fake = try FakeS3()
            defer { fake.stop() }
            let port = try freePort()
            let worker = try await MillraceProcess.worker(
                "blobs", database: database.url, ["--listen", "127.0.0.1:\(port)"],
                environment: [
                    "MILLRACE_PUBLIC_URL": "http://127.0.0.1:\(port)", "MILLRACE_SECRET": "a secret of some length",
                    "MILLRACE_BLOBS": "s3://bucket/files", "S3_ENDPOINT": fake.endpoint, "AWS_REGION": FakeS3.region,
                    "AWS_ACCESS_KEY_ID": FakeS3.accessKey, "AWS_SECRET_ACCESS_KEY": FakeS3.secretKey,
                ])
            let owner = try await database.connect()
            try await eventually("the database knows how links are made; \(worker.output)") {
                try await owner.bool("select count(*) = 2 from millrace.setting where name in ('link_key', 'link_url')")
            }
            let content = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            let link = try await owner.column(
                "select unnest(array[url, id::text]) from millrace.upload_link(100000, 'application/pdf')")
            func ask(
                _ method: String, _ url: String, _ headers: [String: String] = [:], _ body: Data? = nil
            ) async throws -> (status: Int, headers: HTTPURLResponse, body: Data) {
                var request = URLRequest(url: try #require(URL(string: url)), timeoutInterval: 60)
                request.httpMethod = method
                for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
                request.httpBody = body
                let (data, response) = try await URLSession.shared.data(for: request)
                let told = try #require(response as? HTTPURLResponse)
                return (told.statusCode, told, data)
            }
            let pdf = ["Content-Type": "application/pdf"]
            #expect(try await ask("PUT", link[0], ["Content-Type": "text/html"], content).status == 415)
            #expect(try await ask("PUT", link[0], pdf, content.dropLast()).status == 400)
            #expect(try await ask("PUT", link[0] + "0", pdf, content).status == 404)
            #expect(fake.keys.isEmpty)
            #expect(try await ask("PUT", link[0], pdf, content).status == 201)
            #expect(try await ask("PUT", link[0], pdf, content).status == 409)
            #expect(try await ask("PUT", link[0], pdf, Data(count: 100_000)).status == 409)
            let blob = try await owner.value("encode(millrace.upload_blob('\(link[1])'), 'hex')") ?? ""
            #expect(fake.object("files/\(blob.prefix(2))/\(blob.dropFirst(2))") == Array(content))

            let down =
                try await owner.value("millrace.blob_link('\\x\(blob)', 'application/pdf', 'Zeugnis 1.pdf')") ?? ""
            let whole = try await ask("GET", down)
            #expect(whole.status == 200 && whole.body == content)
            #expect(whole.headers.value(forHTTPHeaderField: "Content-Type") == "application/pdf")
            #expect(
                whole.headers.value(forHTTPHeaderField: "Content-Disposition")
                    == "attachment; filename*=UTF-8''Zeugnis%201.pdf")
            let part = try await ask("GET", down, ["Range": "bytes=99990-"])
            #expect(part.status == 206 && part.body == content.suffix(10))
            #expect(part.headers.value(forHTTPHeaderField: "Content-Range") == "bytes 99990-99999/100000")
            #expect(try await ask("GET", down, ["Range": "bytes=100000-"]).status == 416)
            let over = try await owner.value("millrace.blob_link('\\x\(blob)', 'a/b', null, '-1 hour')") ?? ""
            #expect(try await ask("GET", over).status == 410)
            #expect(!worker.output.contains(String(down.suffix(64))))
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await owner.close()
        }
    }

    /// 1. A link is used. 2. Eight more put by it, each something else. 3. There is one blob, and the link takes no more than a document has.
    @Test func `a link stores what it was made for, once, and nothing else`() async throws {
        try await withDatabase { database in
            let port = try freePort()
            let worker = try await MillraceProcess.worker(
                "blobs", database: database.url, ["--listen", "127.0.0.1:\(port)"],
                environment: [
                    "MILLRACE_PUBLIC_URL": "http://127.0.0.1:\(port)", "MILLRACE_SECRET": "a secret of some length",
                    "MILLRACE_DOCUMENT_BYTES": "400K",
                ])
            let owner = try await database.connect()
            try await eventually("the database knows how links are made; \(worker.output)") {
                try await owner.bool(
                    "select count(*) = 3 from millrace.setting where name in ('link_key', 'link_url', 'document_bytes')"
                )
            }
            let large = try await owner.refusal(
                of: "select millrace.document_upload('a.pdf', 'application/pdf', 400001, actor => 'p')")
            #expect(large?.sqlState == "53400" && large?.message.contains("400000") == true)
            let link = try await owner.column(
                "select unnest(array[url, storage_url]) from millrace.document_upload('a.pdf', 'application/pdf', 300000, actor => 'p')"
            )
            /// In chunks, without a stated length.
            func put(_ size: Int, of byte: UInt8) async throws -> String {
                let file = FileManager.default.temporaryDirectory.appending(path: "body-\(UUID().uuidString)")
                try Data(repeating: byte, count: size).write(to: file)
                defer { try? FileManager.default.removeItem(at: file) }
                let answer = try await Program.run(
                    "curl",
                    [
                        "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "PUT", "-H", "Transfer-Encoding: chunked",
                        "-H", "Content-Type: application/pdf", "-T", file.path, link[0],
                    ])
                return answer.text
            }
            func stored() async throws -> [String] {
                try await owner.column(
                    "select (select count(*) from millrace.blob) || ' ' || (select count(*) from millrace.blob_piece) || ' ' || (select count(*) from millrace.blob_upload)"
                )
            }
            for size in [299_999, 300_001, 390_000] { #expect(try await put(size, of: 1) == "400", "\(size)") }
            #expect(try await stored() == ["0 0 0"])
            #expect(try await put(300_000, of: 2) == "201")
            #expect(try await stored() == ["1 2 0"])
            for byte in UInt8(3)..<11 { #expect(try await put(300_000, of: byte) == "409") }
            try await owner.run("select millrace.document_register('\(link[1])', actor => 'p')")
            #expect(try await put(300_000, of: 11) == "409")
            #expect(try await stored() == ["1 2 0"])
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await owner.close()
        }
    }
}
