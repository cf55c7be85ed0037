import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// A gateway says who calls, so its login must be one that is believed.
@Suite struct GatewayLoginTests {
    @Test func `the login that the guide makes may tell the fleet of the providers that a gateway calls`() async throws
    {
        let office = try await TestCluster.office()
        let (client, group) = (TestCluster.name("client"), TestCluster.name("gateways"))
        let login = TestCluster.name("gateway")
        try await office.run(
            "create role \(client); create role \(group) in role \(client); create role \(login) login in role \(group)"
        )
        try await withDatabase(.empty) { database in
            let owner = try await database.connect()
            _ = try await Migrator.ofAllRooms(roles: [("client", client), ("gateway", group)]).migrate(on: owner)
            let gateway = try MillraceProcess(
                ["gateway", "--listen", "127.0.0.1:0"],
                database: database.url.replacing("//millrace@", with: "//\(login)@"),
                environment: [
                    // Nobody is there, which is told of the provider.
                    "MILLRACE_GATEWAY_JWKS_URLS": "http://127.0.0.1:9/keys",
                    "MILLRACE_GATEWAY_JWT_ISSUERS": "https://login.example.com", "MILLRACE_ROLE_CLIENT": client,
                ])
            try await eventually("the fleet hears of the provider of keys") {
                try await owner.int("select count(*) from millrace.provider_seen where provider = 'jwks'") == 1
            }
            gateway.signal(SIGTERM)
            #expect(try await gateway.ended() == 0)
            #expect(!gateway.output.contains("cannot read the fleet"), "\(gateway.output)")
            try await owner.run("drop owned by \(group)")
            await owner.close()
        }
        try await office.run("drop role \(login); drop role \(group); drop role \(client)")
        await office.close()
    }

    @Test func `a gateway does not start with a login that is not believed, nor as a superuser that nobody has named`()
        async throws
    {
        let office = try await TestCluster.office()
        let (client, login) = (TestCluster.name("client"), TestCluster.name("gateway"))
        try await office.run("create role \(client); create role \(login) login in role \(client)")
        try await withDatabase(.empty) { database in
            let owner = try await database.connect()
            _ = try await Migrator.ofAllRooms(roles: [("client", client)]).migrate(on: owner)
            func start(as user: String) async throws -> MillraceProcess {
                try MillraceProcess(
                    ["gateway", "--listen", "127.0.0.1:0"],
                    database: database.url.replacing("//millrace@", with: "//\(user)@"),
                    environment: [
                        "MILLRACE_GATEWAY_JWT_SECRET": String(repeating: "s", count: 40),
                        "MILLRACE_ROLE_CLIENT": client,
                    ])
            }
            for (user, word) in [(login, "checks who a person is"), ("millrace", "is a superuser")] {
                let gateway = try await start(as: user)
                #expect(try await gateway.ended() == 1)
                #expect(
                    gateway.output.contains(word) && gateway.output.contains("trust_claims('\(user)')"),
                    "\(gateway.output)")
            }
            try await owner.run("select millrace.trust_claims('\(login)'), millrace.trust_claims('millrace')")
            for user in [login, "millrace"] {
                let gateway = try await start(as: user)
                try await eventually("the gateway of \(user) is there") { gateway.output.contains("the gateway is at") }
                gateway.signal(SIGTERM)
                #expect(try await gateway.ended() == 0)
                #expect(gateway.output.contains("is a superuser: a flaw") == (user == "millrace"), "\(gateway.output)")
            }
            try await owner.run("drop owned by \(login)")
            await owner.close()
        }
        try await office.run("drop role \(login); drop role \(client)")
        await office.close()
    }
}
