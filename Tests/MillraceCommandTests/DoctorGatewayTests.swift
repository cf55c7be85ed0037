import Composition
import Foundation
import Gateway
import Postgres
import Signatures
import TestSupport
import Testing

@testable import MillraceCommand

/// What `doctor` says of the gateway's tokens.
@Suite struct DoctorGatewayTests {
    private typealias Look = Doctor.KeySetLook

    @Test func `a key set is a problem when it cannot be read, or has no usable key`() {
        let good = Look(host: "one.example", usable: 2, unused: ["key 3: its use is not sig"])
        let said = Doctor.judge([good], fixed: 1)
        #expect(said.word == "ok")
        #expect(said.sentence == "2 keys of one.example (and 1 not used: key 3: its use is not sig), 1 of the settings")
        #expect(Doctor.judge([good, Look(host: "two.example", failure: "no connection")], fixed: 1).word == "problem")
        #expect(
            Doctor.judge([Look(host: "two.example", unused: ["key 1: it is a private key"])], fixed: 0).word
                == "problem")
        #expect(Doctor.judge([], fixed: 1) == .ok("1 of the settings"))
    }

    @Test func `clocks that are twenty seconds apart are a warning, and a cache's date is not today's`() {
        let now = Date(timeIntervalSince1970: 784_111_777)
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        #expect(Doctor.ahead(date: date, age: nil, of: now) == 0)
        #expect(Doctor.ahead(date: date, age: "600", of: now.addingTimeInterval(600)) == 0)
        #expect(Doctor.ahead(date: nil, age: nil, of: now) == nil)
        func judge(_ ahead: Double?) -> Check.Result? {
            Doctor.judgeClock([Look(host: "one.example", usable: 1, ahead: ahead)], leeway: 30)
        }
        #expect(judge(nil) == nil && judge(19)?.word == "ok" && judge(-19)?.word == "ok")
        #expect(judge(20)?.sentence.contains("20 s behind that of one.example") == true)
        #expect(judge(-90)?.word == "warning" && judge(-90)?.sentence.contains("ahead of") == true)
    }

    @Test func `settings that let nobody in, or a stranger, are a problem before any request`() throws {
        func trouble(_ environment: [String: String]) -> String? {
            var surroundings = Surroundings.live()
            surroundings.environment = environment
            let settings = Settings.load(surroundings: surroundings)
            if let problem = settings.problems.first { return problem }
            do throws(Failure) {
                _ = try settings.gatewayTokens()
                return nil
            } catch {
                return error.sentence
            }
        }
        let secret = "0123456789abcdef0123456789abcdef"
        let url = "https://issuer.example/jwks.json"
        #expect(trouble(["MILLRACE_GATEWAY_JWT_SECRET": secret]) == nil)
        #expect(trouble(["SUPABASE_JWT_SECRET": secret]) == nil)
        #expect(
            trouble(["MILLRACE_GATEWAY_JWKS_URLS": url, "MILLRACE_GATEWAY_JWT_ISSUERS": "https://issuer.example/"])
                == nil)
        #expect(
            trouble(["MILLRACE_GATEWAY_JWKS_URLS": "http://127.0.0.1:8/x", "MILLRACE_GATEWAY_JWT_ISSUERS": "a"]) == nil)
        let bad: [([String: String], String)] = [
            ([:], "no key"), (["SUPABASE_JWT_SECRET": "short"], "fewer than 32 bytes"),
            (["MILLRACE_GATEWAY_JWT_SECRET": "short"], "32 bytes"),
            (["MILLRACE_GATEWAY_JWKS_URLS": url], "whose tokens"),
            (
                ["MILLRACE_GATEWAY_JWKS_URLS": "\(url),\(url)", "MILLRACE_GATEWAY_JWT_ISSUERS": "a"],
                "2 key sets and 1 issuers"
            ),
            (["MILLRACE_GATEWAY_JWKS_URLS": "http://issuer.example/jwks.json"], "https://"),
            (["MILLRACE_GATEWAY_JWKS_URLS": "http://127.0.0.1.evil.example/"], "https://"),
            (["MILLRACE_GATEWAY_JWKS_URLS": "http://localhost@evil.example/"], "https://"),
            (["MILLRACE_GATEWAY_JWT_KEYS": "-----BEGIN PUBLIC KEY-----"], "PEM"),
            (
                ["MILLRACE_GATEWAY_TENANT_CLAIM": "user_metadata.tenant", "MILLRACE_GATEWAY_JWT_SECRET": secret],
                "users write"
            ),
        ]
        for (environment, word) in bad {
            let said = trouble(environment)
            #expect(said?.contains(word) == true, "\(word): \(said ?? "taken")")
        }
    }

    @Test func `keys in a file may have many lines, one after the other`() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID().uuidString).pem")
        defer { try? FileManager.default.removeItem(at: file) }
        let key = """
            -----BEGIN PUBLIC KEY-----
            MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
            -----END PUBLIC KEY-----

            """
        try (key + key).write(to: file, atomically: true, encoding: .utf8)
        var surroundings = Surroundings.live()
        surroundings.environment = [
            "MILLRACE_GATEWAY_JWT_KEYS_FILE": file.path, "MILLRACE_CONSOLE_JWT_KEY_FILE": file.path,
        ]
        let settings = Settings.load(surroundings: surroundings)
        #expect(settings.problems.isEmpty, "\(settings.problems)")
        #expect(try settings.gatewayTokens().publicKeys.count == 2)
    }

    @Test func `the doctor asks whether the login may take on the clients' role`() async throws {
        try await withDatabase { database in
            let office = try await TestCluster.office()
            let role = TestCluster.name("app")
            let login = TestCluster.name("door")
            try await office.run("create role \(role) nologin")
            try await office.run("create role \(login) login")
            let connection = try await database.connect(as: login)
            #expect(try await GatewayRights.look(for: role, on: connection) == .forbidden)
            #expect(try await GatewayRights.look(for: "nobody at all", on: connection) == .missing)
            try await office.run("grant \(role) to \(login)")
            #expect(try await GatewayRights.look(for: role, on: connection) == .fine)
            await connection.close()
            await office.close()
        }
        #expect(
            Doctor.judge(.forbidden, role: "app").word == "warning" && Doctor.judge(.fine, role: "app").word == "ok")
    }
}
