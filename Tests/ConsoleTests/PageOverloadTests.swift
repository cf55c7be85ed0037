import Postgres
import TestSupport
import Testing

@testable import Console

/// What strangers plant in `public` does not run as the console's login.
@Suite struct PageOverloadTests {
    @Test(arguments: [false, true]) func `no page calls what a stranger has planted`(isPooled: Bool) async throws {
        guard !isPooled || TestPooler.program != nil else { return }
        let office = try await TestCluster.office()
        let login = TestCluster.name("console_login")
        try await office.run("create role \(login) login")
        try await ConsoleWorld.with({
            $0.template = .planted
            $0.roles = .own
        }) { world in
            for role in world.roles.values { try await world.connection.run("grant \(role) to \(login)") }
            #expect(try await PlantedOverloads.sprung(in: world.database) == [])
            if isPooled {
                try await withPooler(to: world.database, as: login, servers: 4) {
                    try await Self.visit(world, as: [.admin], $0)
                }
            } else {
                try await Self.visit(
                    world, as: ConsoleRole.allCases,
                    ConnectionOptions(location: world.database.url.replacing("//millrace@", with: "//\(login)@")))
            }
            #expect(try await PlantedOverloads.sprung(in: world.database) == [])
        }
        try await office.run("drop role \(login)")
        await office.close()
    }

    private static func visit(
        _ world: ConsoleWorld, as roles: [ConsoleRole], _ options: ConnectionOptions
    ) async throws {
        for role in roles {
            var setup = ConsoleWorld.Setup()
            setup.options = options
            setup.access.localRole = role
            try await ConsoleWorld.serve(world.database, world.connection, setup, world.roles) { visited in
                for one in try await WalkTests.addresses(world) {
                    let answer = try await visited.get("/console\(one.address)")
                    #expect(
                        answer.status == 200 || role == .viewer && answer.status == 403,
                        "\(one.address) of the \(role.rawValue): \(answer.status)")
                }
                guard role == .admin else { return }
                for (action, form) in try await ActionSamples.all(world) {
                    let token = visited.service.options.access.formToken(of: Visitor(name: "local", role: role))
                    _ = try await visited.post(
                        "/console/act/\(action.name)", form.map { ($0, $1) } + [("form_token", token)])
                }
            }
        }
    }
}
