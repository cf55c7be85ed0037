import Fakes
import Foundation
import Postgres
import TestSupport
import Testing
import Transfers

@testable import Blobs

@Suite struct S3Tests {
    /// The examples of Amazon's own documentation, step by step.
    @Test func `signatures are those of the published examples`() throws {
        let signer = SigV4(
            accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            region: "us-east-1")
        let date = Date(timeIntervalSince1970: 1_369_353_600)
        let host = "examplebucket.s3.amazonaws.com"
        func signature(
            _ method: String, _ path: String, query: [SigV4.Field] = [], headers: [SigV4.Field] = [], body: String = ""
        ) -> String {
            let added = signer.sign(
                method, host: host, path: path, query: query, headers: headers,
                payload: SigV4.hash(Array(body.utf8)), at: date)
            return String(added.last?.value.suffix(64) ?? "")
        }
        #expect(SigV4.stamp(date) == "20130524T000000Z")
        #expect(
            signature("GET", "/test.txt", headers: [.init("Range", "bytes=0-9")])
                == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
        #expect(
            signature(
                "PUT", "/test%24file.text",
                headers: [
                    .init("Date", "Fri, 24 May 2013 00:00:00 GMT"), .init("x-amz-storage-class", "REDUCED_REDUNDANCY"),
                ],
                body: "Welcome to Amazon S3.") == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")
        #expect(
            signature("GET", "/", query: [.init("lifecycle", "")])
                == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
        #expect(
            signature("GET", "/", query: [.init("max-keys", "2"), .init("prefix", "J")])
                == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
        let query = signer.presign("GET", host: host, path: "/test.txt", for: .seconds(86_400), at: date)
        #expect(query.hasSuffix("=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"))
        #expect("\(signer)\(String(reflecting: signer))".contains("wJalr") == false)
    }

    private func withS3(_ body: (S3Store, FakeS3, TestDatabase) async throws -> Void) async throws {
        try await withDatabase(.movableClock) { database in
            let fake = try FakeS3()
            defer { fake.stop() }
            let pool = Pool(database.options, size: 4)
            try await body(Self.store(fake, pool), fake, database)
            await pool.close()
        }
    }

    static func store(_ fake: FakeS3, _ pool: Pool, secret: String = FakeS3.secretKey) throws -> S3Store {
        var options = S3Options(
            endpoint: fake.endpoint, region: FakeS3.region, accessKey: FakeS3.accessKey, secretKey: secret)
        options.part = 100_000
        let place = try #require(S3Place("s3://bucket/some/folder"))
        return S3Store(place, options, client: HTTPClient(), pool: pool)
    }

    private func content(_ size: Int) -> [UInt8] { (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) } }

    @Test(arguments: [0, 1, 150_000, 777_777]) func `what is put comes back, whole and in ranges`(_ size: Int)
        async throws
    {
        try await withS3 { store, fake, _ in
            let bytes = content(size)
            let id = try await store.put(bytes)
            #expect(try await store.get(id) == bytes)
            let name = id.description
            #expect(fake.keys == ["some/folder/\(name.prefix(2))/\(name.dropFirst(2))"] && fake.openUploads == 0)
            for range in [0..<1, 5..<size / 2 + 5, size / 2..<size, size..<size + 5] where !range.isEmpty {
                #expect(try await store.get(id, range: range) == Array(bytes[range.clamped(to: 0..<size)]), "\(range)")
            }
            #expect(try await store.put(bytes) == id && fake.denied == 0)
            try await store.verify(id)
        }
    }

    @Test func `one who is busy is asked again, and one who refuses is not believed to have it`() async throws {
        try await withS3 { store, fake, database in
            fake.fail(2)
            let id = try await store.put(content(250_000))
            #expect(try await store.get(id) == content(250_000))
            let stranger = try Self.store(fake, Pool(database.options, size: 1), secret: "another")
            await #expect(throws: BlobError.self) { _ = try await stranger.put(content(10)) }
            #expect(fake.denied > 0 && fake.keys.count == 1)
            let other = try #require(BlobID(String(repeating: "0", count: 64)))
            await #expect(throws: BlobError.notFound(other)) { _ = try await store.get(other) }
            fake.spoil(fake.keys[0], [1])
            await #expect(throws: BlobError.damaged(id)) { try await store.verify(id) }
        }
    }

    @Test func `a put that breaks off leaves nothing, and a sweep takes what nobody refers to`() async throws {
        try await withS3 { store, fake, database in
            struct Broken: Error {}
            let pieces = AsyncThrowingStream<[UInt8], any Error> { continuation in
                for _ in 0..<5 { continuation.yield(content(100_000)) }
                continuation.finish(throwing: Broken())
            }
            await #expect(throws: Broken.self) { _ = try await store.put(pieces, limit: .max) }
            await #expect(throws: BlobError.tooLarge(limit: 10)) { _ = try await store.put(content(11), limit: 10) }
            #expect(fake.keys.isEmpty && fake.openUploads == 0)
            let (kept, forsaken) = (try await store.put(content(10)), try await store.put(content(20)))
            let connection = try await database.connect()
            try await BlobReferences.keep(kept, owner: "me", on: connection)
            #expect(try await store.sweep(grace: .seconds(86_400)).blobs == 0)
            try await connection.run("select millrace.test_clock_advance('25 h')")
            fake.spoil("some/folder/tmp/left", [1])
            fake.fail(4)
            await #expect(throws: BlobError.self) { _ = try await store.sweep(grace: .seconds(86_400)) }
            #expect(try await store.head(forsaken) != nil)
            let swept = try await store.sweep(grace: .seconds(86_400))
            #expect(swept.blobs == 1 && swept.remains == 1)
            #expect(try await store.get(kept) == content(10) && fake.keys.count == 1)
            await #expect(throws: BlobError.notFound(forsaken)) { _ = try await store.get(forsaken) }
            await connection.close()
        }
    }

    @Test func `a signed address allows that one operation and no other`() async throws {
        try await withS3 { store, fake, _ in
            let bytes = content(1000)
            let id = try await store.put(bytes)
            let client = HTTPClient()
            let down = store.downloadAddress(id, for: .seconds(600))
            #expect(try await client.send(HTTPRequest("GET", down)).body == bytes)
            #expect(
                try await client.send(HTTPRequest("GET", down.replacing("Expires=600", with: "Expires=999"))).status
                    == 403)
            #expect(try await client.send(HTTPRequest("DELETE", down)).status == 403)
            let up = store.uploadAddress("new", size: 4, type: "text/plain", for: .seconds(600))
            func put(_ text: String, _ type: String) async throws -> Int {
                try await client.send(
                    HTTPRequest("PUT", up, headers: ["Content-Type": type], body: .bytes(Array(text.utf8)))
                ).status
            }
            #expect(try await put("five!", "text/plain") == 403)
            #expect(try await put("four", "text/html") == 403)
            #expect(try await put("four", "text/plain") == 200)
            #expect(fake.object("some/folder/tmp/new") == Array("four".utf8))
        }
    }

    @Test func `a bucket is read strictly`() {
        #expect(S3Place("s3://my.bucket-1") != nil && S3Place("s3://bucket/a/b_c/")?.folder == "a/b_c")
        for text in [
            "s3://", "s3://ab", "s3://Bucket", "s3://bucket//a", "s3://bucket/a b", "s3://bucket/../x?y", "http://x",
        ] {
            #expect(S3Place(text) == nil, "\(text)")
        }
    }
}
