import Millrace
import Postgres
import TestSupport
import Testing

private struct Note: Job {
    static let kind = "note"
    var text: String
}

@Suite struct DatabaseClientsTests {
    @Test func `a tenant's job goes to its database, and nowhere else`() async throws {
        try await withDatabase { eu in
            try await withDatabase { us in
                let databases = try DatabaseClients(
                    ["eu": .url(eu.url), "us": .url(us.url)], route: .hashed(overrides: ["beta": "us"]))
                #expect(databases.names == ["eu", "us"])
                for tenant in ["acme", "beta"] {
                    try await databases.client(for: tenant).enqueue(Note(text: tenant), tenant: tenant)
                }
                let tenants = "select string_agg(tenant, ',') from millrace.jobs where kind = 'note'"
                #expect(try await eu.connect().value(tenants) == "acme")
                #expect(try await us.connect().value(tenants) == "beta")
                await databases.close()
            }
        }
    }

    @Test func `a route that leads nowhere is refused`() throws {
        let one = Database.url("postgres://127.0.0.1:1/x")
        #expect(throws: QueueError.self) { try DatabaseClients([:]) }
        #expect(throws: QueueError.self) {
            try DatabaseClients(["eu": one], route: .hashed(overrides: ["acme": "us"]))
        }
        let own = try DatabaseClients(
            ["eu": one, "us": one], route: DatabaseRoute { key, _ in key == "a" ? "us" : nil })
        #expect(try own.name(for: "a") == "us")
        #expect(throws: QueueError.self) { try own.client(for: "b") }
    }
}
