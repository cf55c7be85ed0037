import FoundationEssentials
import Postgres
import TestSupport
import Testing

@Suite struct ValueTests {
    @Test func `every type comes back as it went`() async throws {
        try await withConnection(.empty) { connection in
            let date = Date(timeIntervalSince1970: 1_700_000_000.123456)
            let rows = try await connection.query(
                "select $1::bool, $2::int2, $3::int4, $4::int8, $5::float8, $6::text, $7::bytea, $8::jsonb, $9::timestamptz",
                [
                    .bool(true), .int2(.min), .int4(.max), .int8(.min), .float8(-0.1), .text("zwölf 🇨🇭 \\ ' \n"),
                    .bytea([0, 1, 255]), .json("{\"a\": [1, null]}"), .timestamp(date),
                ]
            ) { row throws(PostgresError) in
                let yes = try row.bool(0)
                #expect(yes)
                let value1 = try row.int(1)
                #expect(value1 == Int64(Int16.min))
                let value2 = try row.int(2)
                #expect(value2 == Int64(Int32.max))
                let value3 = try row.int(3)
                #expect(value3 == Int64.min)
                let value4 = try row.double(4)
                #expect(value4 == -0.1)
                let value5 = try row.string(5)
                #expect(value5 == "zwölf 🇨🇭 \\ ' \n")
                #expect(row.bytes(6).map(Array.init) == [0, 1, 255])
                let value6 = try row.json(7)
                #expect(value6 == Array("{\"a\": [1, null]}".utf8))
                let off = try row.date(8).timeIntervalSince(date)
                #expect(abs(off) < 1e-6)
                return 1
            }
            #expect(rows == [1])
        }
    }

    @Test func `a null of every type comes back as null`() async throws {
        try await withConnection(.empty) { connection in
            let nulls = try await connection.query(
                """
                select $1::bool, $2::int2, $3::int4, $4::int8, $5::float8, $6::text, $7::bytea, $8::jsonb, $9::timestamptz,
                       $10::int8[], $11::text[]
                """,
                [
                    .bool(nil), .int2(nil), .int4(nil), .int8(nil), .float8(nil), .text(nil), .bytea(nil),
                    .json(nil as String?), .timestamp(nil), .int8s(nil), .texts(nil),
                ]
            ) { row throws(PostgresError) in
                let value7 = try row.optionalInt(3)
                #expect(value7 == nil)
                #expect(row.optionalDouble(4) == nil)
                #expect(row.optionalString(5) == nil)
                #expect(row.optionalJSON(7) == nil)
                let value8 = try row.optionalDate(8)
                #expect(value8 == nil)
                return (0..<11).count { row.isNull($0) }
            }
            #expect(nulls == [11])
        }
    }

    @Test func `arrays of every type come back, also empty ones and those with nulls`() async throws {
        try await withConnection(.empty) { connection in
            _ = try await connection.query(
                """
                select $1::int2[], $2::int4[], $3::int8[], $4::text[], $5::int8[], $6::text[], $7::bool[]::text, $8::float8[]::text,
                       $9::text[]::text
                """,
                [
                    .int2s([1, -1]), .int4s([.max, .min]), .int8s([.min, 0, .max]), .texts(["", "ä,\"{}", "null"]),
                    .int8s([]), .texts([]), .bools([true, false]), .float8s([0.5, -2]), .texts(["a", nil, ""]),
                ]
            ) { row throws(PostgresError) in
                let value9 = try row.ints(0)
                #expect(value9 == [1, -1])
                let value10 = try row.ints(1)
                #expect(value10 == [Int64(Int32.max), Int64(Int32.min)])
                let value11 = try row.ints(2)
                #expect(value11 == [.min, 0, .max])
                let value12 = try row.strings(3)
                #expect(value12 == ["", "ä,\"{}", "null"])
                let value13 = try row.ints(4)
                #expect(value13 == [])
                let value14 = try row.strings(5)
                #expect(value14 == [])
                let value15 = try row.string(6)
                #expect(value15 == "{t,f}")
                let value16 = try row.string(7)
                #expect(value16 == "{0.5,-2}")
                let value17 = try row.string(8)
                #expect(value17 == "{a,NULL,\"\"}")
            }
        }
    }

    @Test(
        arguments: [
            "'pg_catalog, pg_temp'::text", "'a'::text", "true", "7::int8", "array[array[1, 2], array[3, 4]]::int8[]",
            "'\\x00000001000000000000001400000002000000010000ffff'::bytea",
            "'\\x000000010000000000000014ffffffff00000001'::bytea",
        ])
    func `what is read as an array and is none is an error, not a crash`(value: String) async throws {
        try await withConnection(.empty) { connection in
            let refused = try await failure {
                _ = try await connection.query(.shipped(Array("select \(value)".utf8))) { row throws(PostgresError) in
                    try row.ints(0)
                }
            }
            #expect(refused == .undecodable(column: 0, expected: "an array of one dimension"))
            #expect(try await connection.int("select 1") == 1)
        }
    }

    @Test func `a null inside an array that must have none is an error, not a crash`() async throws {
        try await withConnection(.empty) { connection in
            let null = try await failure {
                _ = try await connection.query("select null::int8") { row throws(PostgresError) in try row.int(0) }
            }
            #expect(null == .undecodable(column: 0, expected: "a value, not null"))
            let inside = try await failure {
                _ = try await connection.query("select array[1, null]::int8[]") { row throws(PostgresError) in
                    try row.ints(0)
                }
            }
            #expect(inside == null)
            #expect(try await connection.int("select 1") == 1)
        }
    }

    @Test func `values of a megabyte and a hundred thousand elements pass`() async throws {
        try await withConnection(.empty) { connection in
            let text = String(repeating: "ü", count: 524_288)
            let json = Array("\"\(String(repeating: "x", count: 1_048_576))\"".utf8)
            let many = (0..<100_000).map { Int64($0) }
            _ = try await connection.query(
                "select $1::text, $2::jsonb, $3::int8[], octet_length($4::bytea)",
                [.text(text), .json(json), .int8s(many), .bytea([UInt8](repeating: 7, count: 3 << 20))]
            ) { row throws(PostgresError) in
                let value18 = try row.string(0)
                #expect(value18 == text)
                let value19 = try row.json(1)
                #expect(value19 == json)
                let value20 = try row.ints(2)
                #expect(value20 == many)
                let value21 = try row.int(3)
                #expect(value21 == 3 << 20)
            }
        }
    }

    @Test(arguments: [
        Date.distantFuture, .distantPast, Date(timeIntervalSince1970: 1e300), Date(timeIntervalSince1970: -1e300),
    ])
    func `a date beyond Postgres's calendar is refused, not a crash`(date: Date) async throws {
        try await withConnection(.empty) { connection in
            let error = try await failure {
                _ = try await connection.query("select $1::timestamptz", [.timestamp(date)]) { _ in }
            }
            #expect(error == nil || error?.sqlState == "22008")
            #expect(try await connection.int("select 1") == 1)
        }
    }

    @Test func `a thousand rows come in order, and an effect tells how many it touched`() async throws {
        try await withConnection(.empty) { connection in
            let rows = try await connection.query("select n from generate_series(1, 1000) n") {
                row throws(PostgresError) in try row.int(0)
            }
            #expect(rows == Array(1...1000))
            try await connection.run("create table public.t (n int)")
            #expect(try await connection.execute("insert into public.t select generate_series(1, 7)") == 7)
            #expect(try await connection.execute("update public.t set n = n where n > 4") == 3)
        }
    }
}
