import Fakes
import Faults
import TestSupport
import Testing
import Transfers

@testable import Mail

@Suite struct SupabaseTests {
    private func with<Value>(
        _ answer: @escaping @Sendable (RawConnection) -> Void,
        _ body: (SupabaseProvider, Locked<[String]>, RawServer) async throws -> Value
    ) async throws -> Value {
        let heard = Locked<[String]>([])
        let server = try RawServer { connection in
            while let head = connection.readHead() {
                let length =
                    head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
                    .flatMap { Int($0.dropFirst(16)) } ?? 0
                let body = connection.read(exactly: length).map { String(decoding: $0, as: UTF8.self) } ?? ""
                heard.withLock { $0.append(head + body) }
                answer(connection)
            }
        }
        defer { server.stop() }
        let client = HTTPClient()
        defer { client.close() }
        var configuration = SupabaseProvider.Configuration(url: "http://127.0.0.1:\(server.port)/", key: "service")
        configuration.redirectTo = "https://app.example/reset?x=1"
        return try await body(SupabaseProvider(configuration, client: client), heard, server)
    }

    @Test func `a reset and a verification are asked for, each over a connection of its own, and nothing else is`()
        async throws
    {
        try await with({ $0.answer("{}") }) { supabase, heard, server async throws in
            let reset = Letter.sample { $0.purpose = .passwordReset }
            #expect(try await handOver(supabase, [reset]) == [.accepted(id: nil)])
            #expect(
                try await handOver(supabase, [.sample { $0.purpose = .accountVerification }]) == [.accepted(id: nil)])
            #expect(try await handOver(supabase, [reset]) == [.accepted(id: nil)])
            #expect(server.accepted == 3)
            let requests = heard.withLock { $0 }
            #expect(
                requests[0].hasPrefix(
                    "POST /auth/v1/recover?redirect_to=https%3A%2F%2Fapp.example%2Freset%3Fx%3D1 HTTP/1.1\r\n"))
            #expect(requests[0].hasSuffix("\r\n\r\n{\"email\":\"ada@reader.example\"}"))
            #expect(requests[0].contains("apikey: service\r\n"))
            #expect(requests[1].hasPrefix("POST /auth/v1/resend?"))
            #expect(requests[1].hasSuffix("{\"type\":\"signup\",\"email\":\"ada@reader.example\"}"))
            #expect(supabase.objection(to: reset) == nil)
            let others: [(inout Letter) -> Void] = [
                { $0.purpose = nil }, { $0.cc = $0.to }, { $0.to += [Mailbox(address: "b@reader.example")] },
                {
                    $0.attachments = [
                        .init(filename: "a.txt", contentType: "text/plain", blob: SampleBlobs.id(1), size: 1)
                    ]
                },
            ]
            for change in others {
                var letter = reset
                change(&letter)
                #expect(supabase.objection(to: letter) != nil)
            }
            #expect(try await handOver(supabase, [.sample()])[0].verdict == "refused")
            #expect(server.accepted == 3 && !supabase.capabilities.mayFollowUnknown)
        }
    }

    @Test func `a lost answer is unknown, and the request is not repeated`() async throws {
        try await with({ $0.reset() }) { supabase, heard, _ async throws in
            let handover = try await handOver(supabase, [.sample { $0.purpose = .passwordReset }])[0]
            #expect(handover.verdict == "unknown")
            #expect(heard.withLock { $0.count } == 1)
        }
    }

    @Test func `the error's name is read wherever this version puts it`() async throws {
        for body in [
            #"{"code":"over_email_send_rate_limit","message":"m"}"#,
            #"{"code":429,"error_code":"over_email_send_rate_limit","msg":"m"}"#,
        ] {
            try await with({ $0.answer(body, status: "429 Slow") }) { supabase, _, _ async throws in
                let handover = try await handOver(supabase, [.sample { $0.purpose = .passwordReset }])[0]
                #expect(handover.verdict == "throttled" && handover.fault?.code == "429 over_email_send_rate_limit")
                #expect(handover.fault?.wait == .seconds(60))
            }
        }
    }

    private typealias Case = (Int, String?, String, ErrorClass?)
    private static let cases: [Case] = [
        (200, nil, "accepted", nil), (429, "over_request_rate_limit", "throttled", .throttled),
        (400, "email_address_not_authorized", "refused", .authentication),
        (400, "email_address_invalid", "refused", .invalid), (400, "validation_failed", "refused", .invalid),
        (400, "captcha_failed", "refused", .authentication),
        (400, "email_provider_disabled", "refused", .authentication),
        (422, "otp_disabled", "refused", .authentication), (404, "user_not_found", "refused", .notFound),
        (401, nil, "refused", .authentication), (403, "bad_jwt", "refused", .authentication),
        (404, nil, "refused", .unavailable), (302, nil, "refused", .unavailable),
        (422, "hook_timeout", "refused", .invalid),
        (500, "unexpected_failure", "unknown", .unknown), (504, "request_timeout", "unknown", .unknown),
        (503, nil, "unknown", .unknown),
    ]

    @Test(arguments: cases)
    func `every answer has its meaning`(status: Int, name: String?, verdict: String, kind: ErrorClass?) {
        let handover = SupabaseProvider.judge(status: status, name: name)
        #expect(handover.verdict == verdict)
        #expect(handover.kind == kind)
    }
}
