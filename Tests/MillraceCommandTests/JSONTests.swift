import Testing

@testable import MillraceCommand

private func problem(_ text: String) -> JSONProblem? { problem(Array(text.utf8)) }

private func problem(_ bytes: [UInt8]) -> JSONProblem? {
    do throws(JSONProblem) {
        _ = try JSONValue.read(bytes)
        return nil
    } catch {
        return error
    }
}

@Suite struct JSONTests {
    @Test func `keys keep their order and values their kind`() throws {
        let value: JSONValue = ["b": 1, "a": [true, nil, 2.5, "x"], "c": [:], "d": []]
        #expect(value.compact == #"{"b":1,"a":[true,null,2.5,"x"],"c":{},"d":[]}"#)
        #expect(
            value.indented == """
                {
                  "b": 1,
                  "a": [
                    true,
                    null,
                    2.5,
                    "x"
                  ],
                  "c": {},
                  "d": []
                }
                """)
    }

    @Test func `whatever is in a text comes back from the document`() throws {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            var text = ""
            for _ in 0..<Int.random(in: 0...20, using: &generator) {
                let range: ClosedRange<UInt32> =
                    [1...0x9f, 0x20...0x7e, 0x1f300...0x1f9ff, 0x2020...0x2030].randomElement() ?? 1...9
                if let scalar = Unicode.Scalar(.random(in: range, using: &generator)) {
                    text.unicodeScalars.append(scalar)
                }
            }
            let value: JSONValue = ["k\(text)": .array([.string(text)])]
            #expect(try JSONValue.read(value.compact) == value)
            #expect(try JSONValue.read(value.indented) == value)
        }
    }

    @Test func `control characters never reach a terminal`() {
        let text = JSONValue.string("a\u{1b}[31m\u{9b}\u{7f}\n\u{2028}").compact
        #expect(text == #""a\u001b[31m\u009b\u007f\n\u2028""#)
    }

    @Test func `numbers lose no digit`() throws {
        for digits in ["0", "-0", "12345678901234567890.123456789012345", "1e400", "1E-7", "-0.10"] {
            #expect(try JSONValue.read(digits).compact == digits)
        }
        #expect(try JSONValue.read("42").integer == 42)
    }

    @Test func `infinity and NaN are null`() {
        #expect(JSONValue.array([.double(.infinity), .double(.nan), .double(1e-7)]).compact == "[null,null,1e-07]")
    }

    @Test func `JSON from Postgres stays as it is, but on one line`() throws {
        #expect(
            JSONValue.object([.init(key: "args", value: .raw("{\"a\": 1.0,\n \"b\": 2}"))]).compact
                == #"{"args":{"a": 1.0,  "b": 2}}"#)
    }

    @Test func `escapes and surrogate pairs are read`() throws {
        #expect(try JSONValue.read(#""\u00e9\ud83d\ude00\/\b\f""#) == .string("é😀/\u{8}\u{c}"))
    }

    @Test func `the last of two equal keys wins`() throws {
        #expect(try JSONValue.read(#"{"a":1,"b":2,"a":3}"#).compact == #"{"a":3,"b":2}"#)
    }

    @Test(arguments: [
        ("", 1, 1), ("{", 1, 2), ("{\n  \"a\": tru\n}", 2, 8), ("[1,]", 1, 4), ("{\"a\":1,}", 1, 8), ("[1 2]", 1, 4),
        ("{a:1}", 1, 2), ("'a'", 1, 1), ("01", 1, 1), ("1.", 1, 3), ("-", 1, 2), ("+1", 1, 1), ("1 2", 1, 3),
        ("\"é\u{1}\"", 1, 3), ("\"abc", 1, 1), (#""\x""#, 1, 2), (#""\u12""#, 1, 2), (#""é\ud800""#, 1, 3),
        (#""\ud800\u0041""#, 1, 2), (#""\udc00""#, 1, 2), (#""\u0000""#, 1, 2), (#""\u+123""#, 1, 2), ("nul", 1, 1),
        ("\u{feff}1", 1, 1), ("{\"a\" 1}", 1, 6), ("[\"\\", 1, 3), ("1e", 1, 3), (".5", 1, 1), ("NaN", 1, 1),
    ])
    func `what is not JSON is told with its place`(text: String, line: Int, column: Int) {
        let found = problem(text)
        #expect(found?.line == line)
        #expect(found?.column == column)
    }

    @Test func `bytes that are not UTF-8 are told with their place`() {
        for bad: [UInt8] in [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xe2, 0x82], [0xf5, 0x80, 0x80, 0x80]] {
            let found = problem(Array("[\"é\",\n \"".utf8) + bad + Array("\"]".utf8))
            #expect(found == JSONProblem(complaint: "this is not UTF-8", line: 2, column: 3, offset: 9))
        }
        #expect(problem([0x22, 0x00, 0x22])?.column == 2)
    }

    @Test func `nesting has a limit`() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(problem(nested(128)) == nil)
        #expect(problem(nested(129))?.column == 129)
        #expect(problem(String(repeating: "{\"a\":", count: 100_000))?.complaint == "more than 128 levels of nesting")
    }
}
