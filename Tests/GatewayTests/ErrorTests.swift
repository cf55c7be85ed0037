import Faults
import Foundation
import JSON
import Telemetry
import TestSupport
import Testing

@testable import Gateway

/// What an app reads when something goes wrong.
@Suite(.timeLimit(.minutes(10))) struct ErrorTests {
    private static let script = """
        create function millrace.fail_with(code text, message text default 'secret table', detail text default '', hint text default '')
            returns int language plpgsql as $$ begin
            raise exception using errcode = code, message = message, detail = detail, hint = hint; end $$;
        create function millrace.fail_quota() returns void language plpgsql as $$ begin
            perform millrace.refuse_quota('too many pages', 'tenant', 'Wait.', 100, 100.5, '2030-02-01 00:00:00.25'); end $$;
        create function millrace.fail_read(d date, t text default null) returns date language sql as $$ select d $$;
        create table millrace.app_thing (id int primary key, other int references millrace.app_thing, small int check (small < 5), needed int not null);
        create function millrace.app_put(id int, other int default null, small int default 1, needed int default 1) returns void
            language sql security definer set search_path = pg_catalog, pg_temp as
            $$ insert into millrace.app_thing values (id, other, small, needed) $$;
        grant execute on function millrace.refuse_quota(text, text, text, numeric, numeric, timestamptz) to ROLE;
        """

    @Test func `each code of the database has its class and its status, and nothing of SQL is shown`() async throws {
        try await GatewayWorld.with(.init(script: Self.script)) { world in
            let cases: [(String, Int, String)] = [
                ("P0002", 404, "not_found"), ("23505", 409, "conflict"), ("23503", 409, "conflict"),
                ("23514", 400, "invalid"), ("23502", 400, "invalid"), ("22P02", 400, "invalid"),
                ("22012", 400, "invalid"), ("40001", 503, "transient"), ("40P01", 503, "transient"),
                ("55P03", 503, "transient"), ("57014", 504, "timeout"), ("42501", 403, "permission"),
                ("42883", 503, "unavailable"), ("42P01", 503, "unavailable"), ("53100", 503, "unavailable"),
                ("25006", 503, "unavailable"), ("54000", 413, "too_large"), ("XX000", 500, "internal"),
                ("P0004", 500, "internal"), ("42601", 500, "internal"), ("0L000", 500, "internal"),
            ]
            for (code, status, kind) in cases {
                let answer = try await world.call("fail_with", #"{"code": "\#(code)"}"#)
                #expect(answer.status == status, "\(code): \(answer.text)")
                #expect(answer.word("class") == kind, "\(code): \(answer.text)")
                #expect(answer.header("content-type") == "application/problem+json")
                #expect(!answer.text.contains("secret"), "\(code): \(answer.text)")
                #expect((answer.header("retry-after") != nil) == (status == 503), "\(code)")
                #expect(answer.word("type") == "/v1/errors#\(kind)" && answer.word("user_message") != nil)
                #expect(answer.json["status"]?.integer == status)
                #expect(answer.word("request_id") == answer.header("x-request-id"))
            }
            let own = try await world.call(
                "fail_with", #"{"code": "P0001", "message": "closed on Sundays", "hint": "come on Monday"}"#)
            #expect(
                own.status == 400 && own.word("detail") == "closed on Sundays" && own.word("hint") == "come on Monday")
        }
    }

    @Test func `a refusal's own class counts, whatever its code`() async throws {
        try await GatewayWorld.with(.init(script: Self.script)) { world in
            for (kind, status) in [
                ("invalid", 400), ("authentication", 401), ("permission", 403), ("not_found", 404), ("conflict", 409),
                ("cancelled", 409), ("too_large", 413), ("unsupported", 415), ("throttled", 429), ("timeout", 504),
                ("transient", 503), ("unavailable", 503), ("unknown", 503), ("internal", 500),
            ] {
                let detail = JSONText.quoted(#"{"error": "\#(kind)", "field": "page"}"#)
                let answer = try await world.call(
                    "fail_with", #"{"code": "22023", "message": "said so", "hint": "do so", "detail": \#(detail)}"#)
                #expect(answer.status == status, "\(kind): \(answer.text)")
                #expect(
                    answer.word("class") == kind && answer.word("field") == "page" && answer.word("detail") == "said so"
                )
                #expect(answer.word("hint") == "do so")
            }
            let quota = try await world.call("fail_quota")
            #expect(quota.status == 429 && quota.word("class") == "quota", "\(quota.text)")
            #expect(quota.json["limit"] == .number("100") && quota.json["used"] == .number("100.5"))
            #expect(quota.word("reset_date")?.hasPrefix("2030-02-01") == true)
            #expect(quota.header("Retry-After") == "86400")
            #expect(quota.word("user_message") == "The limit for this service is reached. We have been told.")
            let invalid = try await world.call("own_jobs", #"{"page": 0}"#)
            #expect(invalid.status == 400 && invalid.word("field") == "page", "\(invalid.text)")
        }
    }

    @Test func `what the app's own tables refuse is named without their names`() async throws {
        try await GatewayWorld.with(.init(script: Self.script)) { world in
            #expect(try await world.call("app_put", #"{"id": 1}"#).status == 200)
            for (body, status) in [
                (#"{"id": 1}"#, 409), (#"{"id": 2, "other": 9}"#, 409), (#"{"id": 3, "small": 9}"#, 400),
                (#"{"id": 4, "needed": null}"#, 400),
            ] {
                let answer = try await world.call("app_put", body)
                #expect(answer.status == status, "\(answer.text)")
                for word in ["app_thing", "small", "constraint", "null value"] {
                    #expect(!answer.text.contains(word), "\(answer.text)")
                }
            }
        }
    }

    @Test func `a value that cannot be read is named`() async throws {
        try await GatewayWorld.with(.init(script: Self.script + CallTests.kinds)) { world in
            for (function, body, field) in [
                ("fail_read", #"{"d": "yesterdayish"}"#, "d"), ("fail_read", #"{"d": 5}"#, "d"),
                ("fail_read", #"{"d": "2030-02-31", "t": "x"}"#, "d"),
                ("kind_scalar", #"{"a": 1.5}"#, "a"), ("kind_scalar", #"{"a": 9223372036854775808}"#, "a"),
                ("kind_scalar", #"{"a": true}"#, "a"), ("kind_scalar", #"{"a": 1, "b": "1"}"#, "b"),
                ("kind_scalar", #"{"a": 1, "c": "x"}"#, "c"), ("kind_scalar", #"{"a": 1, "c": ["x", 1]}"#, "c[1]"),
                ("kind_scalar", #"{"a": 1, "c": [["x"]]}"#, "c[0]"), ("document", #"{"id": "x"}"#, "id"),
                ("document", #"{"id": "{00000000-0000-0000-0000-00000000000}"}"#, "id"),
                ("check_in_arm", #"{"person": "ada", "every": "soon"}"#, "every"),
            ] {
                let answer = try await world.call(function, body)
                #expect(answer.status == 400 && answer.word("class") == "invalid", "\(body): \(answer.text)")
                #expect(answer.word("field") == field, "\(body): \(answer.text)")
            }
        }
    }

    @Test func `a body that is no JSON object is refused with its place`() async throws {
        try await GatewayWorld.with { world in
            for (body, part) in [
                ("{", "offset 1"), (#"{"page": 1, "page": 2}"#, "twice"), ("[]", "an object"), ("null", "an object"),
                (#"{"page": 01}"#, "offset 9"), (#"{"a": "\#u{0}"}"#, "NUL"), (#"{"a": "\u0000"}"#, "NUL"),
                ("{} {}", "offset 3"), (#"{"a": "\ud800"}"#, "surrogate"),
                (String(repeating: "[", count: 100), "nesting"), (#"{"a": {"b": 1, "b": 1}}"#, "twice"),
            ] {
                let answer = try await world.call("own_jobs", body)
                #expect(answer.status == 400 && answer.word("class") == "invalid", "\(body): \(answer.text)")
                #expect(answer.word("detail")?.contains(part) == true, "\(body): \(answer.text)")
            }
            let type = try await world.call("own_jobs", "{}", headers: ["Content-Type": "text/plain"])
            #expect(type.status == 415 && type.word("field") == "Content-Type")
            let form = try await world.call(
                "own_jobs", "", headers: ["Content-Type": "application/json; charset=utf-8"])
            #expect(form.status == 200, "\(form.text)")
            let huge = try await world.call("own_jobs", "{\"x\": \"\(String(repeating: "a", count: 1 << 20))\"}")
            #expect(huge.status == 413 && huge.word("class") == "too_large", "\(huge.text.prefix(300))")
            #expect(huge.header("content-type") == "application/problem+json" && huge.header("x-request-id") != nil)
            let put = try await world.ask("PUT", "/v1/batch", "{}")
            #expect(put.status == 405 && put.header("content-type") == "application/problem+json")
        }
    }

    @Test func `a body in an encoding that is not read is refused as such, and not for its bytes`() async throws {
        try await GatewayWorld.with { world in
            for (path, encoding) in [
                ("/v1/rpc/own_jobs", "gzip"), ("/v1/batch", "br"), ("/v1/sync", "deflate, gzip"),
                ("/v1/sync/devices", "x-unknown"),
            ] {
                let answer = try await world.ask("POST", path, "\u{1f}gzip", headers: ["Content-Encoding": encoding])
                #expect(answer.status == 415 && answer.word("class") == "unsupported", "\(answer.text)")
                #expect(answer.word("field") == "Content-Encoding" && answer.header("accept-encoding") == "identity")
            }
            let plain = try await world.call("own_jobs", "{}", headers: ["Content-Encoding": "identity"])
            #expect(plain.status == 200, "\(plain.text)")
        }
    }

    /// The rows of the guide's table: a status, a class.
    private static func guideRows() throws -> Set<String> {
        let guide = URL(filePath: #filePath).appending(path: "../../../deploy/guides/gateway.md").standardizedFileURL
        let text = try String(contentsOf: guide, encoding: .utf8)
        let table = try #require(text.components(separatedBy: "| status | class | try again |\n|---|---|---|\n").last)
        var rows: Set<String> = []
        for line in table.components(separatedBy: "\n").prefix(while: { $0.hasPrefix("|") }) {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            for status in cells[0].components(separatedBy: ", ") {
                for kind in cells[1].components(separatedBy: ", ") { rows.insert("\(status) \(kind)") }
            }
        }
        return rows
    }

    @Test func `the guide's table of errors is whole`() async throws {
        var expected = Set(ErrorClass.allCases.map { "\($0.httpStatus) \($0.rawValue)" })
        // What the listener refuses with a status of its own, as asked below.
        let own = ["405 invalid", "431 too_large", "501 unsupported"]
        expected.formUnion(own)
        #expect(try Self.guideRows() == expected)
        // No other status stands in the code.
        let sources = URL(filePath: #filePath).appending(path: "../../../Sources").standardizedFileURL
        for room in ["Adapters/Listeners", "Faces/Gateway"] {
            let files = try #require(
                FileManager.default.enumerator(at: sources.appending(path: room), includingPropertiesForKeys: nil))
            for case let file as URL in files where file.pathExtension == "swift" {
                let text = try String(contentsOf: file, encoding: .utf8)
                for match in text.matches(of: /status: ([45]\d\d)\b/) {
                    #expect(
                        own.contains { $0.hasPrefix(match.output.1) }, "\(file.lastPathComponent): \(match.output.1)")
                }
            }
        }
        try await GatewayWorld.with { world in
            let asked = [
                try await world.ask("PUT", "/v1/batch", "{}"),
                try await world.call("now", headers: ["X-Long": String(repeating: "x", count: 17_000)]),
                try await world.ask("POST", "/v1/rpc/now", headers: ["Transfer-Encoding": "gzip"]),
            ]
            #expect(asked.map { "\($0.status) \($0.word("class") ?? "")" } == own)
        }
    }

    @Test func `the type of a problem leads to a page that says what it means`() async throws {
        try await GatewayWorld.with { world in
            let type = try #require(try await world.call("no_such_function").word("type"))
            let parts = type.split(separator: "#").map(String.init)
            #expect(parts.count == 2 && parts[1] == "not_found")
            let page = try await world.ask("GET", parts[0], as: nil)
            #expect(page.status == 200 && page.header("content-type") == "text/html; charset=utf-8")
            for one in ErrorClass.allCases {
                #expect(page.text.contains("id=\"\(one.rawValue)\""), "\(one)")
                #expect(page.text.contains(one.sentence) && page.text.contains("status \(one.httpStatus)"), "\(one)")
            }
        }
    }

    @Test func `what was answered well is in the log of a debugger only, and every refusal in that of all`()
        async throws
    {
        let lines = Locked<[String]>([])
        var setup = GatewayWorld.Setup()
        setup.log = Log(threshold: .info) { line in lines.withLock { $0.append(line.text) } }
        try await GatewayWorld.with(setup) { world in
            #expect(try await world.call("now").status == 200)
            #expect(try await world.call("no_such_function").status == 404)
            try await eventually("the refusal is in the log") {
                lines.value.contains { $0.contains("http.status=404") }
            }
        }
        #expect(!lines.value.contains { $0.contains("http.status=200") })
    }

    @Test func `a failure of ours is in the log with the request's name, and not in the answer`() async throws {
        let lines = Locked<[String]>([])
        var setup = GatewayWorld.Setup()
        setup.script = Self.script
        setup.log = Log(threshold: .debug) { line in lines.withLock { $0.append(line.text) } }
        try await GatewayWorld.with(setup) { world in
            let answer = try await world.call(
                "fail_with", #"{"code": "XX000", "message": "broken inside"}"#, headers: ["X-Request-Id": "mine-1"])
            #expect(answer.status == 500 && answer.header("x-request-id") == "mine-1")
            #expect(answer.word("request_id") == "mine-1" && !answer.text.contains("broken"))
            let other = try await world.call("now", headers: ["X-Request-Id": "no good"])
            #expect(other.header("x-request-id")?.count == 16)
            try await eventually("both are in the log") {
                lines.withLock { $0.count { $0.contains("http.status") } } >= 2
            }
        }
        let all = lines.withLock { $0 }
        #expect(all.contains { $0.contains("broken inside") && $0.contains("mine-1") })
        let access = try #require(all.first { $0.contains("http.status=500") })
        #expect(access.contains("request=mine-1") && access.contains("http.path=/v1/rpc/{function}"))
        #expect(access.contains("subject=") && !access.contains("ada"))
        #expect(!all.contains { $0.contains("Bearer") })
    }
}
