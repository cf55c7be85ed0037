import Foundation
import Postgres
import TestSupport
import Testing

/// One cause is one group, whatever identifiers its errors carry, and what differs in meaning stays apart.
@Suite struct FailureGistTests {
    private static func gists(of errors: [String], on connection: Connection) async throws -> [String] {
        try await connection.query(
            .pasted("select millrace.failure_gist(e) from unnest($1::text[]) with ordinality t(e, n) order by n"),
            [.texts(errors)], deadline: .ample
        ) { row throws(PostgresError) in try row.string(0) }
    }

    @Test(arguments: [11, 12, 13])
    func `errors of other systems fall into one group a cause, and no two causes into one`(seed: UInt64) async throws {
        try await withConnection { connection in
            var random = SeededRandom(seed)
            var errors: [(text: String, error: String)] = []
            for text in ErrorTexts.all {
                for _ in 0..<6 { errors.append((text, ErrorVariant.filled(text, &random))) }
            }
            #expect(ErrorTexts.all.count > 200)
            let gists = try await Self.gists(of: errors.map(\.error), on: connection)
            var gistsOf: [String: Set<String>] = [:]
            var textsOf: [String: Set<String>] = [:]
            for (error, gist) in zip(errors, gists) {
                gistsOf[error.text, default: []].insert(gist)
                textsOf[gist, default: []].insert(error.text)
                #expect(gist.unicodeScalars.count <= 120)
            }
            for (text, gists) in gistsOf where gists.count > 1 {
                Issue.record("\(text) has the gists \(gists.sorted())")
            }
            for (gist, texts) in textsOf where texts.count > 1 {
                Issue.record("\(gist) stands for \(texts.sorted())")
            }
            // What was folded once stays as it is.
            let once = Array(Set(gists)).sorted()
            #expect(try await Self.gists(of: once, on: connection) == once)
        }
    }

    @Test func `what is folded is said in words`() async throws {
        let expected = [
            ("No such customer: 'cus_825c3bd0a1e94f'", "No such customer: '#'"),
            ("Customer cus_NffrFeUfNV2Hib is gone", "Customer cus_# is gone"),
            ("key sk_live_51HxYz9aQwErTyUiOp is revoked", "key sk_live_# is revoked"),
            (
                "attempt 3 of 5: order 3F2504E0-4F89-11D3-9A0C-0305E82C3301 of ann@example.com",
                "order # of <address>"
            ),
            ("open /var/lib/app/3/x.pdf: no such file", "open <path>: no such file"),
            ("[2001:db8::1]:5432 and 10.0.0.7:5432 at 12:30:00", "<ip> and <ip> at <time>"),
            ("took 1m2.5s of 30 s, 1,204.5 of 2", "took <span> of # s, # of #"),
            (
                "column \"email\" of relation \"users\" is missing", "column \"email\" of relation \"users\" is missing"
            ),
            ("KeyError: 'amount'", "KeyError: 'amount'"),
            ("utf8mb4_general_ci and sha256sum in getUserByName", "utf#mb#_general_ci and sha#sum in getUserByName"),
            ("application/json and/or HTTP/1.1", "application/json and/or HTTP/#"),
            (#"C:\Users\ann\a.txt is open"#, "<path> is open"),
            ("", ""), ("’", "’"), ("größe 7", "größe #"), ("'unclosed", "'unclosed"), ("first 1\nsecond 2", "first #"),
        ]
        try await withConnection { connection in
            let gists = try await Self.gists(of: expected.map(\.0), on: connection)
            for (pair, gist) in zip(expected, gists) { #expect(gist == pair.1) }
        }
    }

    @Test func `only the beginning of a line is read, however long it is and whatever stands in it`() async throws {
        try await withConnection { connection in
            for piece in ["a'", "\"", "/a", "1:", "x@", "aB1", "A1_", "://", "(", #"\"#, "..", "-", " id aB1", "'a "] {
                let long = String(repeating: piece, count: 300_000)
                let gists = try await Self.gists(of: [long, String(long.prefix(1000))], on: connection)
                #expect(gists[0] == gists[1], "\(piece)")
            }
        }
    }

    @Test func `a group of before keeps its name, and its jobs are found`() async throws {
        let error = "No such customer: ''cus_NffrFeUfNV2Hib''"
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.register_kinds('{a}', '{null}'), millrace.register_queues('{q}');
                select setval('millrace.seq', 100);
                insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
                select 7, 1, 8, millrace.now(), millrace.now(), millrace.kind_id('a'), millrace.queue_id('q'), 1, 3, 3, 0, '\(error)';
                insert into millrace.failure_group (kind, class, gist, first_at, last_at, failed, dead, examples, lo, hi)
                select millrace.kind_id('a'), 'error', millrace.failure_gist_before('\(error)'), millrace.now(), millrace.now(), 1, 1, '{7}', 7, 7
                """)
            #expect(
                try await connection.column("select gist from millrace.failure_groups()")
                    == ["No such customer: 'cus_NffrFeUfNV#Hib'"])
            #expect(
                try await connection.column(
                    "select unnest(f.ids) from millrace.failure_groups() g cross join lateral millrace.failure_group_jobs(g.id) f"
                ) == ["7"])
        }
    }
}

/// Fills the holes of an error.
private enum ErrorVariant {
    static func filled(_ text: String, _ random: inout SeededRandom) -> String {
        var out = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            out += rest[..<open]
            rest = rest[rest.index(after: open)...]
            if rest.first == "{" {
                out += "{"
                rest.removeFirst()
                continue
            }
            guard let close = rest.firstIndex(of: "}") else { break }
            out += value(rest[..<close], &random)
            rest = rest[rest.index(after: close)...]
        }
        return (out + rest).replacing("}}", with: "}")
    }

    private static let hex = Array("0123456789abcdef")
    private static let base62 = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")

    private static func drawn(_ count: Int, of letters: [Character], _ random: inout SeededRandom) -> String {
        String((0..<count).map { _ in letters[Int.random(in: 0..<letters.count, using: &random)] })
    }

    private static func value(_ name: Substring, _ random: inout SeededRandom) -> String {
        func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
        func one(_ words: String...) -> String { words[number(0...words.count - 1)] }
        switch name {
        case "int":
            return [
                "\(number(1...9))", "\(number(10...99))", "\(number(100...99_999))",
                "\(number(1_000_000...9_999_999_999))",
            ][number(0...3)]
        case "small": return "\(number(1...999))"
        case "word":
            return one(
                "abc", "hello", "n-a", "12a", "Straße", "foo bar", "", "x1", "NaN", "true", "-", "1.2.3", "Zoe")
        case "ip": return "\(number(1...254)).\(number(0...254)).\(number(0...254)).\(number(1...254))"
        case "ip6": return one("::1", "2001:db8::8a2e:370:\(drawn(4, of: hex, &random))", "fe80::1ff:fe23:4567:890a")
        case "host": return "db-\(number(1...999)).internal"
        case "url":
            return one(
                "https://api.example.com/v1/things/\(number(1...999))",
                "https://t\(number(1...9)).example.org/hook?x=1", "http://10.0.0.\(number(1...254)):8080/a")
        case "email":
            return one("ann", "bob.x", "zoë+7", "u\(number(1...999))")
                + one("@example.com", "@mail\(number(1...9)).test")
        case "path":
            var path = ""
            for _ in 0..<number(2...5) {
                path += "/" + one("tmp", "var", "data", "uploads", "acme", "2026", drawn(8, of: hex, &random))
            }
            return path + one("/a", "/invoice-\(number(1...999)).pdf", "/img_\(number(1...99)).png", "/x.csv")
        case "uuid", "uuidplain":
            let digits = Array(drawn(32, of: hex, &random))
            if name == "uuidplain" { return String(digits) }
            let parts = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }
            let text = parts.joined(separator: "-")
            return number(0...3) == 0 ? text.uppercased() : text
        case "hash": return drawn(number(0...1) == 0 ? 40 : 64, of: hex, &random)
        case "hex12": return drawn(12, of: hex, &random).uppercased()
        case "hex2": return drawn(2, of: hex, &random)
        case "aws": return drawn(16, of: Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), &random)
        case "base62":
            return drawn(12, of: base62, &random) + "\(number(0...9))" + drawn(5, of: base62, &random)
                + "\(number(0...9))" + drawn(5, of: base62, &random)
        case "base64":
            return Data((0..<56).map { _ in UInt8.random(in: .min ... .max, using: &random) }).base64EncodedString()
        case "nanoid":
            // Of those without a digit or a sign some look like names.
            let letters = base62 + ["_", "-"]
            return drawn(10, of: letters, &random) + "\(number(0...9))" + drawn(10, of: letters, &random)
        case "ulid": return "01" + drawn(24, of: Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ"), &random)
        case "slug": return "t-\(number(1...9999))"
        case "time":
            let (month, day, hour) = (number(10...12), number(10...28), number(10...23))
            return one(
                "2026-\(month)-\(day)T\(hour):30:00.\(number(100...999))Z", "2026-\(month)-\(day) 12:00:00+00",
                "Sun, \(day) Nov 2026 20:30:00 GMT")
        case "span":
            return one(
                "\(number(1...59))s", "\(number(1...999))ms", "1m\(number(1...59)).5s", "\(number(1...9)).25s")
        default:
            // stripe:cus
            let kind = name.dropFirst("stripe:".count)
            let half = ["pi", "price", "sk_live"].contains(kind) ? 12 : 7
            return "\(kind)_" + drawn(half, of: base62, &random) + "\(number(0...9))"
                + drawn(half - 1, of: base62, &random)
        }
    }
}
