import Fakes
import Foundation
import Glibc
import MillraceQueues
import Postgres
import Signatures
import TestSupport
import Testing

@Suite struct GatewayMemoryTests {
    private static let secret = "a secret of thirty-two bytes: tests"

    private static func token(of person: String) -> String {
        func base64(_ bytes: [UInt8]) -> String {
            Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
                .replacing("=", with: "")
        }
        let text = [#"{"alg":"HS256","typ":"JWT"}"#, #"{"sub":"\#(person)","exp":4000000000}"#]
            .map { base64(Array($0.utf8)) }.joined(separator: ".")
        return text + "." + base64(HMAC.sha256(Array(text.utf8), key: Array(secret.utf8)))
    }

    /// In KiB.
    private static func memory(of process: pid_t) throws -> Int {
        let status = try String(contentsOf: URL(filePath: "/proc/\(process)/status"), encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        return try #require(Int(line.filter(\.isNumber)))
    }

    @Test func `the memory of streams goes back to the system when they have closed`() async throws {
        let office = try await TestCluster.office()
        let (client, login) = (TestCluster.name("client"), TestCluster.name("gateway"))
        try await office.run("create role \(client); create role \(login) login in role \(client)")
        try await withDatabase(.empty) { database in
            let owner = try await database.connect()
            _ = try await Migrator.ofAllRooms(roles: [("client", client), ("gateway", login)]).migrate(on: owner)
            let gateway = try MillraceProcess(
                ["gateway", "--listen", "127.0.0.1:0"],
                database: database.url.replacing("//millrace@", with: "//\(login)@"),
                environment: [
                    "MILLRACE_GATEWAY_JWT_SECRET": Self.secret, "MILLRACE_ROLE_CLIENT": client,
                    "MILLRACE_GATEWAY_RATES": "address=100000:100000",
                ])
            try await eventually("the gateway is there; it says: \(gateway.output)") {
                gateway.output.contains("the gateway is at")
            }
            let place = try #require(gateway.output.firstMatch(of: /the gateway is at http:\/\/127\.0\.0\.1:(\d+)/))
            let port = try #require(Int(place.output.1))
            let before = try Self.memory(of: gateway.pid)
            // As many as the descriptors of this process allow.
            var streams: [RawConnection] = []
            for number in 0..<600 {
                let stream = try RawConnection(to: port)
                stream.write(
                    "GET /v1/me/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(Self.token(of: "p\(number / 5)"))\r\n\r\n"
                )
                streams.append(stream)
            }
            for stream in streams { #expect(stream.readHead()?.hasPrefix("HTTP/1.1 200 ") == true) }
            let most = try Self.memory(of: gateway.pid)
            for stream in streams { stream.reset() }
            var after = most
            try await eventually("the memory has gone back: \(before) KiB, \(most) with streams, \(after) now") {
                after = try Self.memory(of: gateway.pid)
                return after - before < (most - before) / 2
            }
            print("\(before) KiB, with \(streams.count) streams \(most), afterwards \(after)")
            gateway.signal(SIGTERM)
            #expect(try await gateway.ended() == 0)
            try await owner.run("drop owned by \(login)")
            await owner.close()
        }
        try await office.run("drop role \(login); drop role \(client)")
        await office.close()
    }
}
