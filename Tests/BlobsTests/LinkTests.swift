import Blobs
import Foundation
import Postgres
import Telemetry
import TestSupport
import Testing

@Suite struct LinkTests {
    private static let links = BlobLinks(publicURL: "https://app.example/", secrets: ["a secret of some length"])

    private static func token(_ url: String?) -> String { url?.split(separator: "/").last.map(String.init) ?? "" }

    @Test func `a link opens as it was made, until its time is over, and only unchanged`() throws {
        let id = try #require(BlobID(String(repeating: "ab", count: 32)))
        let what = BlobLinks.Download(id: id, type: "application/pdf", name: "Größe 1.pdf")
        let url = try #require(Self.links.download(what, until: 1000))
        #expect(url.hasPrefix("https://app.example/v1/blobs/g."))
        let token = Self.token(url)
        #expect(Self.links.openDownload(token, at: 1000) == .open(what))
        #expect(Self.links.openDownload(token, at: 1001) == .expired)
        #expect(Self.links.openUpload(token, at: 0) == .foreign)
        for changed in [
            token.replacing(".1000.", with: ".9000."), String(token.dropLast()), token + "0", "", ".", "g.....",
        ] {
            #expect(Self.links.openDownload(changed, at: 0) == .foreign, "\(changed)")
        }
        let newer = BlobLinks(publicURL: "https://app.example", secrets: ["another one", "a secret of some length"])
        #expect(newer.openDownload(token, at: 0) == .open(what))
        // What it is of is signed with it.
        let owned = BlobLinks.Download(id: id, type: "image/png", owner: "chat:m:1", reader: [1, 2, 255])
        let ownedToken = Self.token(Self.links.download(owned, until: 1000))
        #expect(Self.links.openDownload(ownedToken, at: 1000) == .open(owned))
        #expect(Self.links.openDownload(ownedToken, at: 1001) == .expired)
        let parts = ownedToken.split(separator: ".", omittingEmptySubsequences: false)
        let bare = (parts.prefix(5) + parts.suffix(1)).joined(separator: ".")
        #expect(Self.links.openDownload(bare, at: 0) == .foreign)
        let stranger = BlobLinks(publicURL: "https://app.example", secrets: ["another one"])
        #expect(stranger.openDownload(token, at: 0) == .foreign)
    }

    @Test func `SQL makes the links that we open, and an uploaded blob is kept until its owner takes it over`()
        async throws
    {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            #expect(
                try await connection.refusal(of: "select millrace.upload_link(5, 'text/plain')")?.sqlState == "55000")
            let key = try #require(Self.links.newestKey).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            try await connection.run("select millrace.link_key_set('\\x\(key)', 'https://app.example/')")
            let row = try await connection.records(
                "select id, url, storage_url, extract(epoch from expires_at)::bigint from millrace.upload_link(5, 'text/plain')"
            )[0].dropFirst().dropLast().split(separator: ",").map(String.init)
            let expiry = try #require(Int(row[3]))
            let upload = BlobLinks.Upload(id: row[0], size: 5, type: "text/plain", expiry: expiry)
            #expect(row[1] == Self.links.upload(upload) && row[2] == "upload:\(row[0])")
            #expect(Self.links.openUpload(Self.token(row[1]), at: expiry) == .open(upload))
            for bad in ["0, 'text/plain'", "5, 'text'", "5, 'a/b; c=d'", "5, 'a/b', '2 days'"] {
                #expect(
                    try await connection.refusal(of: "select millrace.upload_link(\(bad))")?.sqlState == "22023",
                    "\(bad)")
            }

            let pool = Pool(database.options, size: 3)
            let store = BlobPlace.postgres.store(pool: pool)
            let (one, other) = (try await store.put([1, 2, 3]), try await store.put([4]))
            let arrived = "millrace.upload_arrived('\(row[0])', '\\x\(one)')"
            #expect(try await connection.bool(arrived))
            #expect(try await connection.bool(arrived) == false)
            #expect(
                try await connection.refusal(of: "select millrace.upload_arrived('\(row[0])', '\\x\(other)')")?.sqlState
                    == "23505")
            #expect(try await connection.value("encode(millrace.upload_blob('\(row[0])'), 'hex')") == "\(one)")

            let down = try await connection.value("millrace.blob_link('\\x\(one)', 'text/plain', 'ä.txt')")
            #expect(
                Self.links.openDownload(Self.token(down), at: 0)
                    == .open(BlobLinks.Download(id: one, type: "text/plain", name: "ä.txt")))

            // For workers that look what a link is of it says so.
            let owned = "millrace.blob_link('\\x\(one)', 'text/plain', 'ä.txt', '1 hour', 'chat:m:1', '\\x0102ff')"
            #expect(try await connection.value(owned)?.split(separator: ".").count == down?.split(separator: ".").count)
            try await connection.run("select millrace.link_key_set('\\x\(key)', 'https://app.example/', null, true)")
            #expect(
                Self.links.openDownload(Self.token(try await connection.value(owned)), at: 0)
                    == .open(
                        BlobLinks.Download(
                            id: one, type: "text/plain", name: "ä.txt", owner: "chat:m:1", reader: [1, 2, 255])))
            try await connection.run("select millrace.link_key_set('\\x\(key)', 'https://app.example/')")
            #expect(try await connection.value(owned)?.split(separator: ".").count == down?.split(separator: ".").count)

            // A day later the other blob is deleted; two days later the upload that nobody has taken over is, too.
            let keepers = (0..<2).map { _ in BlobSweeper(store, log: .silent) }
            try await connection.run("select millrace.test_clock_advance('25 h')")
            #expect(try await keepers[0].turn()?.blobs == 1)
            #expect(try await keepers[1].turn() == nil)
            try await connection.run("select millrace.test_clock_advance('30 h')")
            #expect(try await keepers[1].turn()?.blobs == 0)
            #expect(try await connection.value("millrace.upload_blob('\(row[0])')") == nil)
            try await connection.run("select millrace.test_clock_advance('25 h')")
            #expect(try await keepers[0].turn()?.blobs == 1)
            await pool.close()
            await connection.close()
        }
    }

    @Test func `a link is one put's at a time, until it ends, is given up, or says nothing for five minutes`()
        async throws
    {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            try await connection.run("select millrace.link_key_set(sha256('k'), 'https://app.example', 1000)")
            let large = try await connection.refusal(of: "select millrace.upload_link(1001, 'text/plain')")
            #expect(large?.sqlState == "53400" && large?.message.contains("at most 1000 bytes") == true)
            let id = try await connection.value("select id from millrace.upload_link(1000, 'text/plain')") ?? ""
            let expiry = Int(Date().timeIntervalSince1970) + 3600
            let pool = Pool(database.options, size: 3)
            let store = BlobPlace.postgres.store(pool: pool)
            let blob = try await store.put([1, 2, 3])
            func reserve() async throws -> UploadLinkReservation {
                try await UploadLinkReservation.reserve(id, expiry: expiry, pool: pool)
            }
            let first = try await reserve()
            await #expect(throws: UploadLinkReservation.Refused.busy) { _ = try await reserve() }
            await first.release()
            let second = try await reserve()
            // The abandoned put does not affect the one that goes on.
            await first.release()
            await #expect(throws: UploadLinkReservation.Refused.used) { try await first.arrived(blob) }
            await #expect(throws: UploadLinkReservation.Refused.busy) { _ = try await reserve() }
            try await connection.run("select millrace.test_clock_advance('6 minutes')")
            let third = try await reserve()
            // Late, it is not stored at all.
            let bytes = AsyncStream<[UInt8]> { continuation in
                continuation.yield([9, 9, 9])
                continuation.finish()
            }
            await #expect(throws: UploadLinkReservation.Refused.busy) {
                _ = try await store.put(second.counted(bytes, size: 3), limit: 3)
            }
            #expect(try await connection.int("select count(*) from millrace.blob") == 1)
            try await third.arrived(blob)
            await #expect(throws: UploadLinkReservation.Refused.used) { _ = try await reserve() }
            // The link stays used after the upload has been taken over.
            try await connection.run("select millrace.blob_release('\\x\(blob)', 'upload:\(id)')")
            await #expect(throws: UploadLinkReservation.Refused.used) { _ = try await reserve() }
            try await connection.run("select millrace.test_clock_advance('3 days')")
            try await connection.run("select millrace.blob_sweep_turn()")
            #expect(try await connection.int("select count(*) from millrace.upload") == 0)
            await pool.close()
            await connection.close()
        }
    }

    @Test(arguments: ["postgres", "dir"]) func `a body of another size leaves nothing behind`(_ kind: String)
        async throws
    {
        try await withDatabase { database in
            let directory = FileManager.default.temporaryDirectory.appending(path: "blobs-\(UUID().uuidString)").path
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let connection = try await database.connect()
            let pool = Pool(database.options, size: 3)
            let store = try #require(BlobPlace(kind == "dir" ? "dir:\(directory)" : kind)).store(pool: pool)
            let hold = try await UploadLinkReservation.reserve(UUID().uuidString, expiry: 4_000_000_000, pool: pool)
            for pieces in [0, 1, 29, 31, 1000] {
                let taken = Locked(0)
                let body = AsyncStream<[UInt8]>(unfolding: {
                    taken.add() <= pieces ? [UInt8](repeating: 7, count: 10_000) : nil
                })
                await #expect(throws: BlobError.wrongSize(expected: 300_000)) {
                    _ = try await store.put(hold.counted(body, size: 300_000), limit: 300_000)
                }
                // Reading stops as soon as there is too much.
                #expect(taken.value <= 31, "\(pieces)")
            }
            for table in ["blob", "blob_piece", "blob_upload", "blob_reference"] {
                #expect(try await connection.int("select count(*) from millrace.\(table)") == 0, "\(table)")
            }
            let files = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
            #expect(files.allSatisfy { $0 == "tmp" }, "\(files)")
            await pool.close()
            await connection.close()
        }
    }

    @Test func `parts are taken in their order from the last who goes on, and those of a broken-off upload are swept`()
        async throws
    {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            try await connection.run("select millrace.link_key_set(sha256('k'), 'https://app.example', 1000)")
            let id = try await connection.value("select id from millrace.upload_link(6, 'text/plain')") ?? ""
            let expiry = Int(Date().timeIntervalSince1970) + 3600
            let pool = Pool(database.options, size: 3)
            let store = BlobPlace.postgres.store(pool: pool)
            let (one, two) = (try await store.put([1, 2]), try await store.put([3, 4]))
            func resume(_ place: Int) async throws -> UploadLinkReservation? {
                try await UploadLinkReservation.resume(id, expiry: expiry, at: place, pool: pool)
            }
            let early = try await resume(2)
            #expect(early.map { _ in 1 } == nil)
            let first = try #require(try await resume(0))
            try await first.add(one, at: 0, size: 2)
            // Another goes on: what the first adds late is refused.
            let second = try #require(try await resume(2))
            await #expect(throws: UploadLinkReservation.Refused.busy) { try await first.add(two, at: 2, size: 2) }
            await #expect(throws: UploadLinkReservation.Refused.busy) { try await second.add(two, at: 0, size: 2) }
            try await second.add(two, at: 2, size: 2)
            try await second.add(two, at: 4, size: 2)
            #expect(try await second.parts() == [one, two, two])
            #expect(try await UploadLinkReservation.came(by: id, pool: pool) == 6)
            // A part of the same content twice is kept once.
            #expect(
                try await connection.column("select owner from millrace.blob_reference") == [
                    "part:\(id)", "part:\(id)",
                ])
            try await connection.run("update millrace.upload_part set n = 10000 where n = 3")
            await #expect(throws: UploadLinkReservation.Refused.tooManyParts) {
                try await second.add(one, at: 6, size: 2)
            }
            // Two days after the end of its link nothing is left.
            let sweeper = BlobSweeper(store, log: .silent)
            try await connection.run("select millrace.test_clock_advance('73 h')")
            _ = try await sweeper.turn()
            #expect(try await connection.int("select count(*) from millrace.upload_part") == 0)
            try await connection.run("select millrace.test_clock_advance('25 h')")
            #expect(try await sweeper.turn()?.blobs == 2)
            await pool.close()
            await connection.close()
        }
    }
}
