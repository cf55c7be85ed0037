import Fakes
import Glibc
import TestSupport
import Testing

@testable import Transfers

/// Addresses from users: nothing of ours may be reached through them.
@Suite struct RefusalTests {
    /// Ways to say "this machine" or "this network"; @ stands for the port of a server that listens on loopback.
    static let tricks = [
        "https://127.0.0.1:@/", "https://127.1:@/", "https://127.0.1:@/", "https://2130706433:@/",
        "https://0x7f000001:@/",
        "https://0x7f.0.0.1:@/", "https://0x7f.1:@/", "https://0177.0.0.1:@/", "https://017700000001:@/",
        "https://0177.0x0.1:@/", "https://127.0.0.1.:@/", "https://127.255.255.254:@/", "https://0:@/",
        "https://0.0.0.0:@/",
        "https://00000000177.0.0.1:@/", "https://localhost:@/", "https://LocalHost:@/", "https://localhost.:@/",
        "https://LOCALHOST.:@/x", "https://[::1]:@/", "https://[0:0:0:0:0:0:0:1]:@/", "https://[::]:@/",
        "https://[::ffff:127.0.0.1]:@/", "https://[::ffff:7f00:1]:@/", "https://[::127.0.0.1]:@/",
        "https://[64:ff9b::127.0.0.1]:@/", "https://[64:ff9b:1::7f00:1]:@/", "https://[2002:7f00:1::]:@/",
        "https://[2001:0:7f00:1::]:@/", "https://[fe80::1]:@/", "https://[fec0::1]:@/", "https://[fd00:ec2::254]:@/",
        "https://[ff02::1]:@/", "https://[2001:db8::1]:@/", "https://10.0.0.1:@/", "https://172.16.0.1:@/",
        "https://192.168.0.1:@/", "https://169.254.169.254:@/", "https://100.100.100.200:@/",
        "https://168.63.129.16:@/",
        "https://198.18.0.1:@/", "https://192.0.2.1:@/", "https://224.0.0.1:@/", "https://255.255.255.255:@/",
        "https://240.0.0.1:@/", "https://192.88.99.1:@/", "https://①②⑦.⓪.⓪.①:@/", "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:@/",
        "https://%31%32%37.0.0.1:@/", "https://127。0。0。1:@/",
    ]

    @Test(arguments: tricks)
    func `no spelling of an address that is not public is connected to`(trick: String) async throws {
        try await withServer {
            $0.waitForEnd()
        } _: { server, _ in
            let client = HTTPClient(.strict())
            var request = HTTPRequest("POST", trick.replacing("@", with: "\(server.port)"), body: .bytes([1]))
            request.limits.total = .seconds(20)
            let error = try await failure(as: TransferError.self) { _ = try await client.send(request) }
            // A few are no addresses at all for libcurl or the resolver; that is as good.
            #expect([.refused, .invalid, .resolve].contains(error?.kind), "\(String(describing: error))")
            #expect(error?.outcomeIsUnknown == false)
            #expect(server.accepted == 0)
        }
    }

    @Test func `the tricks would work without the check`() async throws {
        // Otherwise the test above could not fail.
        try await withServer(answering { _, connection in connection.answer("inside") }) { server, _ in
            let client = HTTPClient()
            var inside = 0
            for trick in Self.tricks.prefix(23) {
                let url = trick.replacing("@", with: "\(server.port)").replacing("https://", with: "http://")
                if try await failure(as: TransferError.self, { _ = try await client.send(HTTPRequest("GET", url)) })
                    == nil
                {
                    inside += 1
                }
            }
            #expect(inside >= 15)
        }
    }

    @Test func `only https, only high ports, no users`() async throws {
        let client = HTTPClient(.strict())
        for (url, kind) in [
            ("http://1.1.1.1/", TransferError.Kind.refused), ("https://1.1.1.1:22/", .refused),
            ("https://1.1.1.1:80/", .refused),
            ("https://1.1.1.1:1023/", .refused), ("https://user@1.1.1.1/", .invalid),
            ("https://u:p@1.1.1.1/", .invalid),
            ("ftp://1.1.1.1/", .invalid), ("file:///etc/passwd", .invalid), ("https://[fe80::1%25lo]/", .refused),
            ("https://1.1.1.1@127.0.0.1/", .invalid), ("https://1.1.1.1\\@127.0.0.1/", .invalid),
        ] {
            let error = try await failure(as: TransferError.self) { _ = try await client.send(HTTPRequest("GET", url)) }
            #expect(error?.kind == kind && error?.stage == .unsent, "\(url)")
        }
    }

    @Test func `a name that resolves to loopback is refused by the address that is connected to`() async throws {
        try await withServer {
            $0.waitForEnd()
        } _: { server, _ in
            var configuration = HTTPClient.Configuration.strict()
            configuration.loop.trust = Trust(names: ["hooks.example:\(server.port):127.0.0.1,::1"])
            let error = try await failure(as: TransferError.self) {
                _ = try await HTTPClient(configuration).send(
                    HTTPRequest("GET", "https://hooks.example:\(server.port)/"))
            }
            #expect(error?.kind == .refused)
            #expect(error?.sentence.contains("loopback") == true)
            #expect(server.accepted == 0)
        }
    }

    @Test func `a redirect is an answer, and when it is followed it is checked like the first address`() async throws {
        let reached = Locked(0)
        try await withServer(
            answering { _, connection in
                reached.withLock { $0 += 1 }
                return connection.answer("inside")
            }
        ) { inner, _ in
            try await withServer(
                answering { _, connection in
                    connection.answer(
                        "", status: "302 Found", headers: "Location: http://127.0.0.1:\(inner.port)/\r\n")
                }
            ) { outer, url in
                let client = HTTPClient(.strict(try AllowedHosts(url)))
                var request = patient("GET", url)
                let answer = try await client.send(request)
                #expect(answer.status == 302)
                request.redirects = .followed(most: 3)
                let error = try await failure(as: TransferError.self) { _ = try await client.send(request) }
                #expect(error?.kind == .refused)
                #expect(reached.withLock { $0 } == 0)
                // And it would have gone there.
                let open = try await HTTPClient().send(request)
                #expect(open.text == "inside")
            }
        }
    }
}
