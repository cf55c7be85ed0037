import Faults
import Foundation
import Testing

@Suite struct ErrorClassTests {
    @Test func `the table of classes is the one that was promised`() {
        let table: [(String, String, String)] = [
            ("transient", "warning", "after"), ("timeout", "warning", "same_key"),
            ("unavailable", "warning", "elsewhere"), ("throttled", "warning", "after"),
            ("quota", "warning", "elsewhere"), ("authentication", "error", "elsewhere"),
            ("permission", "error", "never"), ("not_found", "error", "never"), ("conflict", "warning", "never"),
            ("invalid", "error", "never"), ("too_large", "error", "never"), ("unsupported", "error", "never"),
            ("unknown", "warning", "same_key"), ("cancelled", "notice", "never"), ("internal", "error", "never"),
        ]
        #expect(ErrorClass.allCases.map(\.rawValue) == table.map(\.0))
        #expect(ErrorClass.allCases.map(\.severity.rawValue) == table.map(\.1))
        #expect(ErrorClass.allCases.map(\.retry.rawValue) == table.map(\.2))
        let sentences = ErrorClass.allCases.map(\.sentence)
        #expect(Set(sentences).count == sentences.count)
        for sentence in sentences {
            #expect(sentence.hasSuffix(".") && sentence.count < 120 && sentence.first?.isUppercase == true)
        }
    }

    @Test(
        arguments: [
            ("no connection", ErrorClass(curl: 7, isSent: false), "networkConnectionFailed", "warning"),
            ("no name", ErrorClass(curl: 6, isSent: false), "networkConnectionFailed", "warning"),
            ("no answer in time", ErrorClass(curl: 28, isSent: false), "networkTimeout", "warning"),
            ("no answer in time from the gateway", ErrorClass(http: 504), "networkTimeout", "warning"),
            ("too fast", ErrorClass(http: 429), "rateLimitExceeded", "warning"),
            ("used up", ErrorClass(http: 429, name: "daily_quota_exceeded"), "rateLimitExceeded", "warning"),
            ("the server fails", ErrorClass(http: 500), "serverError", "warning"),
            ("a wrong key", ErrorClass(http: 401), "invalidCredentials", "error"),
            ("a wrong recipient", ErrorClass(http: 422), "passwordResetFailed", "error"),
            ("too large", ErrorClass(http: 413), "passwordResetFailed", "error"),
        ])
    func `an app's sign-in hears what kind of failure it was`(
        _ what: String, kind: ErrorClass?, sign: String, severity: String
    ) throws {
        let kind = try #require(kind)
        #expect(kind.authenticationError == sign && kind.severity.rawValue == severity, "\(what)")
    }

    @Test func `the guide prints the table, and says what differs from the apps' papers`() throws {
        let guide = try String(
            contentsOf: URL(filePath: #filePath).deletingLastPathComponent().appending(
                path: "../../deploy/guides/errors.md"), encoding: .utf8)
        let rows = ErrorClass.allCases.map { kind in
            "| \(kind.rawValue) | \(kind.severity.rawValue) | \(kind.retry.rawValue) | \(kind.authenticationError) | "
                + "\(kind.appError) | \(kind.sentence) |"
        }
        let printed: [String] = guide.components(separatedBy: "\n").filter { $0.hasPrefix("|") }
        #expect(Array(printed.dropFirst(2)) == rows)
        let beside = try #require(guide.components(separatedBy: "## Beside the apps' own errors").last)
        // What a sign-in hears other than by the papers, where all that they do not name is passwordResetFailed.
        for kind in ErrorClass.allCases
        where ![.timeout, .unavailable, .throttled, .transient, .authentication].contains(kind)
            && kind.authenticationError != "passwordResetFailed"
        {
            #expect(beside.contains(kind.authenticationError) && beside.contains("`\(kind.rawValue)`"), "\(kind)")
        }
        #expect(
            beside.contains("`toAppError`") && beside.contains("where the papers say `passwordResetFailed` of a quota"))
    }

    /// A message goes to a second provider only if the first certainly refused it.
    @Test func `only what the provider refused as a whole may go elsewhere`() {
        for kind in ErrorClass.allCases where kind.retry == .elsewhere {
            #expect(kind.bearing == .refusing || kind == .unavailable)
        }
        #expect(ErrorClass.unknown.retry == .sameKey)
    }

    @Test(
        arguments: [
            (200, nil), (204, nil), (304, nil), (301, ErrorClass.unsupported), (400, .invalid), (401, .authentication),
            (402, .quota), (403, .permission), (404, .notFound), (405, .unsupported), (408, .timeout), (409, .conflict),
            (410, .notFound), (413, .tooLarge), (415, .unsupported), (418, .invalid), (422, .invalid),
            (425, .transient),
            (429, .throttled), (500, .transient), (501, .unsupported), (502, .transient), (503, .unavailable),
            (504, .timeout), (507, .quota), (529, .transient), (599, .transient),
        ] as [(Int, ErrorClass?)])
    func `HTTP statuses have their class`(status: Int, expected: ErrorClass?) {
        #expect(ErrorClass(http: status) == expected)
    }

    @Test(arguments: [
        (429, "daily_quota_exceeded", ErrorClass.quota), (429, "rate_limit_exceeded", .throttled),
        (403, "invalid_api_key", .authentication), (409, "concurrent_idempotent_requests", .transient),
        (409, "invalid_idempotent_request", .conflict), (400, "BadDeviceToken", .notFound),
        (429, "TooManyProviderTokenUpdates", .throttled), (404, "UNREGISTERED", .notFound),
        (503, "SlowDown", .throttled), (403, "SignatureDoesNotMatch", .authentication),
        (403, "AccessDenied", .permission), (503, "never heard of", .unavailable),
    ])
    func `a provider's own name for an error wins over its status`(
        status: Int, name: String, expected: ErrorClass
    ) {
        #expect(ErrorClass(http: status, name: name) == expected)
    }

    @Test func `a name is of no account when the status is a success`() {
        #expect(ErrorClass(http: 200, name: "invalid_api_key") == nil)
    }

    @Test(
        arguments: [
            (250, nil, nil), (354, nil, nil), (421, nil, ErrorClass.unavailable), (450, "4.2.0", .transient),
            (451, "4.7.1", .throttled), (452, "4.2.2", .throttled), (452, nil, .throttled), (454, nil, .unavailable),
            (454, "4.7.8", .authentication), (535, "5.7.8", .authentication), (535, nil, .authentication),
            (550, "5.1.1", .notFound), (550, nil, .notFound), (550, "5.7.1", .permission), (550, "5.7.26", .permission),
            (552, "5.3.4", .tooLarge), (552, "5.2.2", .quota), (554, nil, .permission), (501, "5.1.3", .invalid),
            (503, nil, .unsupported), (559, nil, .invalid), (459, nil, .transient), (550, "5.x.1", .notFound),
            (550, "", .notFound),
        ] as [(Int, String?, ErrorClass?)])
    func `SMTP replies have their class`(reply: Int, enhanced: String?, expected: ErrorClass?) {
        #expect(ErrorClass(smtp: reply, enhanced: enhanced) == expected)
    }

    @Test func `gRPC statuses have their class`() {
        let table: [ErrorClass?] = [
            nil, .cancelled, .unknown, .invalid, .timeout, .notFound, .conflict, .permission, .quota, .conflict,
            .transient, .invalid, .unsupported, .transient, .unavailable, .invalid, .authentication,
        ]
        #expect((0...16).map { ErrorClass(grpc: $0) } == table)
        #expect(ErrorClass(grpc: 99) == .unknown)
    }

    @Test(
        arguments: [
            (0, nil, nil), (3, ErrorClass.internal, .internal), (6, .unavailable, .unavailable),
            (7, .unavailable, .unavailable), (16, .transient, .unknown), (28, .timeout, .unknown),
            (35, .unavailable, .unavailable), (52, .transient, .unknown), (55, .transient, .unknown),
            (56, .transient, .unknown), (60, .unavailable, .unavailable), (63, .tooLarge, .tooLarge),
            (67, .authentication, .authentication), (42, .cancelled, .cancelled), (1234, .transient, .unknown),
        ] as [(Int32, ErrorClass?, ErrorClass?)])
    func `libcurl's results have their class, by whether the request had left`(
        code: Int32, before: ErrorClass?, after: ErrorClass?
    ) {
        #expect(ErrorClass(curl: code, isSent: false) == before)
        #expect(ErrorClass(curl: code, isSent: true) == after)
    }

    @Test func `an error says its class, its code and what happened`() {
        #expect(Fault(.throttled, code: "429", "too fast").description == "throttled (429): too fast")
        #expect(Fault(.internal, "a mistake").description == "internal: a mistake")
    }
}
