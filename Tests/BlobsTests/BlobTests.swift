import Blobs
import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@Suite struct BlobTests {
    enum Kind: CaseIterable { case directory, postgres }

    /// A store of that kind in its own database.
    private func withStore(
        _ kind: Kind, _ body: (any BlobStore, TestDatabase, Connection, String) async throws -> Void
    ) async throws {
        try await withDatabase(.movableClock) { database in
            let directory = FileManager.default.temporaryDirectory.appending(path: "blobs-\(UUID().uuidString)").path
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let pool = Pool(database.options, size: 6)
            let place = kind == .directory ? BlobPlace.directory(directory) : .postgres
            let connection = try await database.connect()
            try await body(place.store(pool: pool), database, connection, directory)
            await connection.close()
            await pool.close()
        }
    }

    private func content(_ size: Int, seed: Int = 0) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 31 &+ $0 >> 8) }
    }

    /// In pieces of odd sizes, after which it may go wrong.
    private func pieces(
        of bytes: [UInt8], failing: Bool = false, between: @escaping @Sendable () async throws -> Void = {}
    ) -> AsyncThrowingStream<[UInt8], any Error> {
        struct Broken: Error {}
        let rest = Mutex(bytes[...])
        return AsyncThrowingStream {
            try await between()
            let piece = rest.withLock { rest in
                defer { rest = rest.dropFirst(70_001) }
                return Array(rest.prefix(70_001))
            }
            if piece.isEmpty, failing { throw Broken() }
            return piece.isEmpty ? nil : piece
        }
    }

    @Test(arguments: Kind.allCases) func `what was put comes back, whole and in parts`(_ kind: Kind) async throws {
        try await withStore(kind) { store, _, _, _ in
            for size in [0, 1, 1000, 262_143, 262_144, 262_145, 1_500_000] {
                let bytes = content(size, seed: size)
                let (id, stored) = try await store.put(pieces(of: bytes), limit: size)
                #expect(stored == size)
                #expect(try await store.get(id) == bytes)
                for range in [0..<1, size / 3..<size / 2, 262_140..<262_150, max(size - 5, 0)..<size + 5] {
                    let part = range.clamped(to: 0..<size)
                    #expect(try await store.get(id, range: range) == Array(bytes[part]), "\(size) \(range)")
                }
                #expect(try await store.head(id)?.size == size)
                try await store.verify(id)
            }
            let empty = try #require(BlobID("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
            #expect(try await store.head(empty)?.size == 0)
            let other = try #require(BlobID(String(repeating: "0", count: 64)))
            #expect(try await store.head(other) == nil)
            await #expect(throws: BlobError.notFound(other)) { _ = try await store.get(other) }
        }
    }

    @Test(arguments: Kind.allCases) func `a put that fails, is too large or is cancelled leaves nothing`(_ kind: Kind)
        async throws
    {
        struct Broken: Error {}
        try await withStore(kind) { store, _, connection, directory in
            let bytes = content(1_000_000)
            await #expect(throws: (any Error).self) {
                _ = try await store.put(pieces(of: bytes, failing: true), limit: .max)
            }
            await #expect(throws: BlobError.tooLarge(limit: 999_999)) {
                _ = try await store.put(pieces(of: bytes), limit: 999_999)
            }
            let begun = Mutex(0)
            let task = Task {
                try await store.put(
                    pieces(of: bytes) {
                        if begun.withLock({
                            $0 += 1; return $0
                        }) > 8 {
                            try await Task.sleep(for: .seconds(600))
                        }
                    }, limit: .max)
            }
            try await eventually("it is in the middle") { begun.withLock { $0 } > 8 }
            task.cancel()
            await #expect(throws: (any Error).self) { _ = try await task.value }
            #expect(try await store.list().isEmpty)
            #expect(
                try await connection.int(
                    "select (select count(*) from millrace.blob_piece) + (select count(*) from millrace.blob_upload)")
                    == 0)
            if kind == .directory {
                #expect(try FileManager.default.subpathsOfDirectory(atPath: directory) == ["tmp"])
            }
        }
    }

    @Test(arguments: Kind.allCases) func `the same content put many times at once is one blob`(_ kind: Kind)
        async throws
    {
        try await withStore(kind) { store, _, connection, directory in
            let bytes = content(600_000)
            let ids = try await withThrowingTaskGroup(of: BlobID.self) { group in
                for _ in 0..<12 { group.addTask { try await store.put(pieces(of: bytes), limit: .max).id } }
                return try await group.reduce(into: Set<BlobID>()) { $0.insert($1) }
            }
            #expect(ids.count == 1)
            #expect(try await store.list().map(\.id) == Array(ids))
            #expect(try await store.get(try #require(ids.first)) == bytes)
            #expect(try await connection.int("select count(*) from millrace.blob_piece") == (kind == .postgres ? 3 : 0))
            if kind == .directory {
                #expect(try FileManager.default.contentsOfDirectory(atPath: directory + "/tmp").isEmpty)
            }
        }
    }

    @Test func `what a killed put leaves goes after an hour, and one that goes on keeps what it has`() async throws {
        try await withStore(.postgres) { store, _, connection, _ in
            let killed = try await connection.int("select millrace.blob_upload()")
            let slow = try await connection.int("select millrace.blob_upload()")
            for upload in [killed, slow] { try await connection.run("select millrace.blob_stage(\(upload), 0, 'a')") }
            try await connection.run("select millrace.test_clock_advance('50 min')")
            #expect(try await store.clean(grace: .seconds(86_400)) == 0)
            try await connection.run("select millrace.blob_stage(\(slow), 1, 'b')")
            try await connection.run("select millrace.test_clock_advance('11 min')")
            #expect(try await store.clean(grace: .seconds(86_400)) == 1)
            #expect(try await connection.column("select distinct upload from millrace.blob_piece") == ["\(slow)"])
            #expect(try await connection.bool("select millrace.blob_store(\(slow), sha256('ab'), 2)"))
        }
    }

    @Test(arguments: Kind.allCases) func `a sweep takes what nobody refers to, after the grace`(_ kind: Kind)
        async throws
    {
        try await withStore(kind) { store, _, connection, directory in
            let kept = try await store.put(content(1000, seed: 1))
            let loose = try await store.put(content(300_000, seed: 2))
            #expect(try await BlobReferences.keep(kept, owner: "document:1", on: connection))
            #expect(try await BlobReferences.keep(kept, owner: "document:1", on: connection) == false)
            #expect(try await BlobReferences.keep(kept, owner: "document:2", on: connection))
            #expect(try await store.sweep(grace: .seconds(86_400)).blobs == 0)
            try await connection.run("select millrace.test_clock_advance('25 h')")
            #expect(try await store.forsaken(grace: .seconds(86_400)).map(\.id) == [loose])
            let swept = try await store.sweep(grace: .seconds(86_400))
            #expect(swept.blobs == 1 && swept.bytes == 300_000)
            #expect(try await store.head(loose) == nil)
            await #expect(throws: (any Error).self) { _ = try await store.get(loose) }
            #expect(try await store.get(kept) == content(1000, seed: 1))
            #expect(try await BlobReferences.release(kept, owner: "document:1", on: connection))
            #expect(try await BlobReferences.release(kept, owner: "document:1", on: connection) == false)
            #expect(try await BlobReferences.release(kept, owner: "document:2", on: connection))
            #expect(try await store.sweep(grace: .seconds(86_400)).blobs == 0, "the grace begins with the release")
            try await connection.run("select millrace.test_clock_advance('25 h')")
            #expect(try await store.sweep(grace: .seconds(86_400)).blobs == 1)
            #expect(
                try await connection.int(
                    "select (select count(*) from millrace.blob_piece) + (select count(*) from millrace.blob)") == 0)
            if kind == .directory {
                let files = try FileManager.default.subpathsOfDirectory(atPath: directory)
                #expect(files.allSatisfy { $0.utf8.count <= 3 }, "\(files)")
            }
            await #expect(throws: PostgresError.self) {
                try await BlobReferences.keep(kept, owner: "late", on: connection)
            }
        }
    }

    @Test(arguments: Kind.allCases) func `puts, references and sweeps at once never lose what is referred to`(
        _ kind: Kind
    ) async throws {
        try await withStore(kind) { store, database, _, _ in
            // Without any grace period: only the order of locks protects, and a put whose reference comes too late is put again.
            let end = End()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    while !end.hasCome {
                        for blob in try await store.forsaken(grace: .zero) {
                            _ = try await store.forget(blob.id, grace: .zero)
                        }
                    }
                }
                for user in 0..<4 {
                    group.addTask {
                        let connection = try await database.connect()
                        for turn in 0..<40 {
                            let bytes = content(2000, seed: turn % 5)
                            let owner = "user:\(user)"
                            var id: BlobID
                            while true {
                                do {
                                    id = try await store.put(bytes)
                                    try await BlobReferences.keep(id, owner: owner, on: connection)
                                    break
                                } catch let error as PostgresError where ["P0002", "55000"].contains(error.sqlState) {}
                            }
                            // Without any grace period a file may be missing while another put has already written its row again, until
                            // that put's file comes.
                            if kind == .postgres { #expect(try await store.get(id) == bytes) }
                            try await BlobReferences.release(id, owner: owner, on: connection)
                        }
                        await connection.close()
                    }
                }
                for _ in 0..<4 { try await group.next() }
                end.come()
                try await group.waitForAll()
            }
        }
    }

    @Test func `a put that meets a sweep of the same content is there afterwards`() async throws {
        try await withStore(.directory) { store, database, connection, directory in
            let bytes = content(5000)
            let id = try await store.put(bytes)
            try await connection.run("select millrace.test_clock_advance('25 h')")
            // The sweep stands between deleting the row and its commit, with the file gone.
            let sweeper = try await database.connect()
            try await sweeper.run("begin; select millrace.blob_forget('\\x\(id)', '1 day')")
            let name = id.description
            try FileManager.default.removeItem(atPath: "\(directory)/\(name.prefix(2))/\(name.dropFirst(2))")
            async let again = store.put(bytes)
            try await eventually("the put waits for the sweep") {
                try await connection.bool(
                    "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%blob_touch%')"
                )
            }
            try await sweeper.run("commit")
            #expect(try await again == id)
            #expect(try await store.get(id) == bytes)
            #expect(try await store.head(id) != nil)
            await sweeper.close()
        }
    }

    @Test func `files and directories are ours alone`() async throws {
        try await withStore(.directory) { store, _, _, directory in
            let id = try await store.put(content(10))
            let name = id.description
            for (path, mode) in [
                (directory, 0o700), (directory + "/tmp", 0o700), ("\(directory)/\(name.prefix(2))", 0o700),
                ("\(directory)/\(name.prefix(2))/\(name.dropFirst(2))", 0o600),
            ] {
                var info = stat()
                #expect(stat(path, &info) == 0 && Int(info.st_mode & 0o777) == mode, "\(path)")
            }
        }
    }

    @Test func `damage is found, and torn content is never taken for whole`() async throws {
        try await withStore(.directory) { store, _, _, directory in
            let id = try await store.put(content(10_000))
            let name = id.description
            let path = "\(directory)/\(name.prefix(2))/\(name.dropFirst(2))"
            let handle = try FileHandle(forWritingTo: URL(filePath: path))
            try handle.seek(toOffset: 5000)
            try handle.write(contentsOf: Data([1, 2, 3]))
            try handle.close()
            await #expect(throws: BlobError.damaged(id)) { try await store.verify(id) }
            #expect(try await store.put(content(10_000)) == id)
            try await store.verify(id)
        }
    }

    @Test func `a place is read strictly`() {
        #expect(BlobPlace("postgres") == .postgres)
        #expect(BlobPlace("dir:/var/lib/millrace/blobs/") == .directory("/var/lib/millrace/blobs"))
        for text in ["", "dir:", "dir:relative", "dir:/a/../b", "s3://b", "postgres:", "Postgres", "/var/blobs"] {
            #expect(BlobPlace(text) == nil, "\(text)")
        }
    }
}

private final class End: Sendable {
    private let state = Mutex(false)
    var hasCome: Bool { state.withLock { $0 } }
    func come() { state.withLock { $0 = true } }
}
