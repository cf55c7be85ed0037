import Fakes
import Foundation
import Postgres
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Uploads that go on where they ended, through the real executable: connections end in the middle, and it is killed.
@Suite struct UploadPartTests {
    private struct Told {
        let status: Int
        let offset: Int?
        let isComplete: Bool
    }

    private func ask(_ method: String, _ url: String, at place: Int? = nil, _ body: Data? = nil) async throws -> Told {
        var request = URLRequest(url: try #require(URL(string: url)), timeoutInterval: 60)
        request.httpMethod = method
        if let place {
            request.setValue("\(place)", forHTTPHeaderField: "Upload-Offset")
            request.setValue("application/offset+octet-stream", forHTTPHeaderField: "Content-Type")
        }
        request.httpBody = body
        let (_, response) = try await URLSession.shared.data(for: request)
        let told = try #require(response as? HTTPURLResponse)
        func header(_ name: String) -> String? { told.value(forHTTPHeaderField: name) }
        return Told(
            status: told.statusCode, offset: header("Upload-Offset").flatMap { Int($0) },
            isComplete: header("Upload-Complete") == "?1")
    }

    /// Announces all of it, sends a part, and is gone.
    private func breakOff(_ url: String, at place: Int, announced: Int, sent: Data) throws {
        let address = try #require(URL(string: url))
        let connection = try RawConnection(to: try #require(address.port))
        connection.write(
            Array(
                """
                PATCH \(address.path) HTTP/1.1\r\nHost: x\r\nContent-Type: application/offset+octet-stream\r\n\
                Upload-Offset: \(place)\r\nContent-Length: \(announced)\r\n\r\n
                """.utf8) + Array(sent))
        connection.end()
    }

    @Test(arguments: ["postgres", "dir", "s3"])
    func `an upload goes on behind what has come when its connection ends and when the worker is killed`(
        kind: String
    ) async throws {
        try await withDatabase { database in
            let fake = try FakeS3()
            defer { fake.stop() }
            let folder = FileManager.default.temporaryDirectory.appending(path: "parts-\(UUID().uuidString)").path
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let port = try freePort()
            var environment = [
                "MILLRACE_PUBLIC_URL": "http://127.0.0.1:\(port)", "MILLRACE_SECRET": "a secret of some length",
                "MILLRACE_BLOBS": ["postgres": "postgres", "dir": "dir:\(folder)", "s3": "s3://bucket/files"][kind],
            ]
            if kind == "s3" {
                environment["S3_ENDPOINT"] = fake.endpoint
                environment["AWS_REGION"] = FakeS3.region
                environment["AWS_ACCESS_KEY_ID"] = FakeS3.accessKey
                environment["AWS_SECRET_ACCESS_KEY"] = FakeS3.secretKey
            }
            let settings = environment.compactMapValues { $0 }
            func start() async throws -> MillraceProcess {
                try await MillraceProcess.worker(
                    "parts", database: database.url, ["--listen", "127.0.0.1:\(port)"], environment: settings)
            }
            let first = try await start()
            let owner = try await database.connect()
            try await eventually("the database knows how links are made; \(first.output)") {
                try await owner.bool("select count(*) = 2 from millrace.setting where name in ('link_key', 'link_url')")
            }
            let size = 3_000_000
            let content = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
            let link = try await owner.column(
                "select unnest(array[url, id::text]) from millrace.upload_link(\(size), 'application/pdf')")
            func came() async throws -> Int {
                Int(try await owner.int("select coalesce(millrace.upload_came('\(link[1])'), \(size))"))
            }
            let nothing = try await ask("HEAD", link[0])
            #expect(nothing.status == 200 && nothing.offset == 0 && !nothing.isComplete)
            #expect(try await ask("PATCH", link[0], at: 5, content.prefix(10)).status == 409)
            #expect(try await ask("PATCH", link[0], at: 0, content + [1]).status == 400)
            #expect(try await ask("PATCH", link[0], nil).status == 415)

            // 1. The connection ends: what has come of it is kept, also less than a part.
            try breakOff(link[0], at: 0, announced: size, sent: content.prefix(1_600_000))
            try await eventually("what came is kept; \(first.output)") { try await came() > 1_048_576 }
            try await eventually("nobody adds to it any more") {
                try await owner.bool("select held is null from millrace.upload where id = '\(link[1])'")
            }
            let kept = try await came()
            #expect(kept <= 1_600_000)

            // 2. It is killed while a put is under way, which holds the link.
            let address = try #require(URL(string: link[0]))
            let open = try RawConnection(to: port)
            open.write(
                Array(
                    """
                    PATCH \(address.path) HTTP/1.1\r\nHost: x\r\nContent-Type: application/partial-upload\r\n\
                    Upload-Offset: \(kept)\r\nContent-Length: \(size - kept)\r\n\r\n
                    """.utf8) + Array(content[kept..<kept + 1_100_000]))
            try await eventually("a part of it is kept") { try await came() > kept }
            first.signal(SIGKILL)
            _ = try await first.ended()
            open.end()
            let second = try await start()
            let (before, told) = (try await came(), try await ask("HEAD", link[0]))
            #expect(told.offset == before && before > kept && before < size)

            // 3. The rest, at once, although nobody has given the link back.
            #expect(try await ask("PATCH", link[0], at: kept, content[kept...]).offset == before)
            let ended = try await ask("PATCH", link[0], at: before, content[before...])
            #expect(ended.status == 204 && ended.offset == size && ended.isComplete, "\(second.output)")
            // Its answer may have been lost.
            #expect(try await ask("HEAD", link[0]).isComplete)
            #expect(try await ask("PATCH", link[0], at: size, Data()).status == 204)
            #expect(try await ask("PATCH", link[0], at: 0, content).status == 409)
            let blob = try await owner.value("encode(millrace.upload_blob('\(link[1])'), 'hex')") ?? ""
            let down = try await owner.value("millrace.blob_link('\\x\(blob)', 'application/pdf')") ?? ""
            let (whole, _) = try await URLSession.shared.data(from: try #require(URL(string: down)))
            #expect(whole == content)
            // Its parts are nobody's any more.
            #expect(try await owner.int("select count(*) from millrace.upload_part") == 0)
            #expect(try await owner.column("select owner from millrace.blob_reference") == ["upload:\(link[1])"])
            second.signal(SIGTERM)
            #expect(try await second.ended() == 0)
            await owner.close()
        }
    }
}
