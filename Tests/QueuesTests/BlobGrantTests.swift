import Foundation
import Postgres
import Schema
import TestSupport
import Testing

/// Who may name a blob by its hash.
@Suite(.enabled(if: Template.hasRooms)) struct BlobGrantTests {
    /// Put as staff puts it; its hash.
    private static func put(_ text: String, on owner: Connection) async throws -> String {
        try await owner.run("select millrace.blob_put(sha256('\(text)'), '\(text)')")
        return try await owner.value("encode(sha256('\(text)'), 'hex')") ?? ""
    }

    private static func calls(_ hash: String) -> [String] {
        [
            "select millrace.document_register('blob:\(hash)', actor => 'p')",
            """
            select millrace.mail_send(array['a@b.example'], 's', 't', attachments =>
                '[{"filename": "a.pdf", "content_type": "application/pdf", "blob": "\(hash)"}]')
            """,
        ]
    }

    /// The refusals of all ways to name it; nil where it is accepted.
    private static func refusals(_ hash: String, to connection: Connection) async throws -> [String?] {
        var found: [String?] = []
        for call in calls(hash) {
            let refusal = try await connection.refusal(of: call)
            found.append(
                refusal.map { "\($0.sqlState) \($0.message) \($0.hint ?? "")".replacing(hash, with: "<hash>") })
        }
        return found
    }

    private static func claim(_ json: String, on connection: Connection) async throws {
        try await connection.run("select set_config('request.jwt.claims', '\(json)', false)")
    }

    @Test func `a hash alone opens nothing, and another's blob is answered as one that is not there`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            try await owner.run(
                "select millrace.grant_enqueue('\(roles.client)'), millrace.grant_backend('\(roles.client)')")
            let hash = try await Self.put("of another", on: owner)
            let absent = String(repeating: "0", count: 64)
            let client = try await database.connect(as: roles.client)
            let refused = try await Self.refusals(hash, to: client)
            #expect(refused == (try await Self.refusals(absent, to: client)))
            #expect(refused.allSatisfy { $0?.hasPrefix("P0002 there is no blob <hash>") == true }, "\(refused)")
            #expect(try await owner.int("select count(*) from millrace.blob_reference") == 0)
            for role in [roles.worker, roles.admin] {
                let staff = try await database.connect(as: role)
                #expect(try await Self.refusals(hash, to: staff) == [nil, nil], "\(role)")
                await staff.close()
            }
            await client.close()
        }
    }

    @Test func `staff gives a blob to a role, or to a tenant, and to nobody beside`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            try await owner.run(
                "select millrace.grant_enqueue('\(roles.client)'), millrace.grant_backend('\(roles.client)')")
            let client = try await database.connect(as: roles.client)
            let neighbour = try await database.connect(as: roles.neighbour)
            let hash = try await Self.put("for a role", on: owner)
            let allow = "millrace.blob_allow(sha256('for a role'), '\(roles.client)')"
            #expect(try await owner.bool(allow))
            #expect(try await owner.bool(allow) == false)
            #expect(try await Self.refusals(hash, to: client) == [nil, nil])
            // A member of the role is another role, and a person of the role's is within a tenant.
            #expect(try await !Self.refusals(hash, to: neighbour).contains(nil))
            try await Self.claim(#"{"sub": "p", "tenant": "acme"}"#, on: client)
            #expect(try await !Self.refusals(hash, to: client).contains(nil))

            let shared = try await Self.put("for a tenant", on: owner)
            try await owner.run("select millrace.blob_allow(sha256('for a tenant'), null, 'acme')")
            #expect(try await Self.refusals(shared, to: client) == [nil, nil])
            #expect(try await !Self.refusals(shared, to: neighbour).contains(nil))
            try await Self.claim(#"{"sub": "p", "tenant": "acme"}"#, on: neighbour)
            #expect(try await Self.refusals(shared, to: neighbour) == [nil, nil])
            try await Self.claim(#"{"sub": "p"}"#, on: neighbour)
            #expect(try await !Self.refusals(shared, to: neighbour).contains(nil))

            #expect(
                try await owner.refusal(of: "select millrace.blob_allow(sha256('x'), 'r')")?.sqlState == "P0002")
            #expect(
                try await owner.refusal(of: "select millrace.blob_allow(sha256('for a role'), null)")?.sqlState
                    == "22023")
            #expect(
                try await client.refusal(of: "select millrace.blob_allow(sha256('x'), '\(roles.client)')")?.sqlState
                    == "42501")
            await client.close()
            await neighbour.close()
        }
    }

    @Test func `content may be named by those who brought it, by mail or by a link`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            try await owner.run(
                "select millrace.grant_enqueue('\(roles.client)'), millrace.grant_backend('\(roles.client)')")
            let client = try await database.connect(as: roles.client)
            let neighbour = try await database.connect(as: roles.neighbour)
            try await client.run(
                """
                select millrace.mail_send(array['a@b.example'], 's', 't', attachments =>
                    '[{"filename": "a.pdf", "content_type": "application/pdf", "data": "bWFpbA=="}]')
                """)
            let mailed = try await owner.value("encode(sha256('mail'), 'hex')") ?? ""
            #expect(try await Self.refusals(mailed, to: client) == [nil, nil])
            #expect(try await !Self.refusals(mailed, to: neighbour).contains(nil))

            try await owner.run("select millrace.link_key_set(sha256('k'), 'https://a.example')")
            try await Self.claim(#"{"sub": "p", "tenant": "acme"}"#, on: client)
            let place =
                try await client.column(
                    "select storage_url from millrace.document_upload('a.pdf', 'application/pdf', 3)"
                ).first ?? ""
            let linked = try await Self.put("link", on: owner)
            #expect(try await !Self.refusals(linked, to: client).contains(nil))
            try await owner.run("select millrace.upload_arrived('\(place.dropFirst(7))', sha256('link'))")
            #expect(try await Self.refusals(linked, to: client) == [nil, nil])
            try await Self.claim(#"{"sub": "p", "tenant": "other"}"#, on: client)
            #expect(try await !Self.refusals(linked, to: client).contains(nil))
            #expect(try await !Self.refusals(linked, to: neighbour).contains(nil))
            await client.close()
            await neighbour.close()
        }
    }
}
