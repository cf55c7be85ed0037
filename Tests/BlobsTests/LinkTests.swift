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
        let stranger = BlobLinks(publicURL: "https://app.example", secrets: ["another one"])
        #expect(stranger.openDownload(token, at: 0) == .foreign)
    }

    @Test func `SQL makes the links that we open, and what came by one is kept for whoever takes it over`() async throws
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
            let upload = BlobLinks.Upload(id: row[0], size: 5, type: "text/plain")
            let expiry = try #require(Int(row[3]))
            #expect(row[1] == Self.links.upload(upload, until: expiry) && row[2] == "upload:\(row[0])")
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

            // A day later nobody misses the other; two days later nobody has taken over what came.
            let keepers = (0..<2).map { _ in BlobKeeper(store, log: .silent) }
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
}
