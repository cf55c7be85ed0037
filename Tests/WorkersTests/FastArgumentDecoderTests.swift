import FoundationEssentials
import MillraceJobs
import Testing

@testable import Workers

@Suite struct FastArgumentDecoderTests {
    private struct Mail: Codable, Equatable {
        struct Person: Codable, Equatable {
            var name: String
            var age: UInt8?
        }
        enum Colour: String, Codable { case red, blue }
        enum Step: Codable, Equatable {
            case wait(seconds: Int)
            case go
        }
        var to: Person?
        var all: [Person]?
        var sizes: [String: Int]?
        var marks: [Double?]?
        var colour: Colour?
        var step: Step?
        var when: Date?
        var link: URL?
        var data: Data?
        var price: Decimal?
        var ratio: Double?
        var small: Float?
        var huge: Int128?
        var n: Int?
        var ok: Bool?
        var grid: [[Int]]?
    }

    /// Looks where it has no business: at paths, and behind errors.
    private struct Curious: Decodable, Equatable {
        var depth: Int
        var guess: Int
        var when: Date?

        enum CodingKeys: CodingKey { case guess, when }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            depth = decoder.codingPath.count
            guess = (try? container.decode(Int.self, forKey: .guess)) ?? -1
            when = try? container.decode(Date.self, forKey: .when)
        }
    }

    private struct Counted: Decodable, Equatable {
        var all: [Int] = []
        var more: Int

        init(from decoder: any Decoder) throws {
            var container = try decoder.unkeyedContainer()
            for _ in 0..<(container.count ?? -1) { all.append(try container.decode(Int.self)) }
            more = container.count ?? -1
        }
    }

    private struct Kelvin: Decodable, Equatable {
        var K: Int?
    }

    /// What it accepts is what JSONDecoder makes of it. True if it did.
    @discardableResult private func agrees<Value: Decodable & Equatable>(_ type: Value.Type, _ text: [UInt8]) -> Bool {
        guard let brief = FastArgumentDecoder.decode(type, from: text) else { return false }
        let full = try? JSONDecoder().decode(type, from: Data(text))
        #expect(full == brief, "\(String(decoding: text, as: UTF8.self)) as \(type)")
        return true
    }

    private static let usual = [
        #"{}"#, #"{"n": 1}"#, #"{"n": -12}"#, #"{"n": 0, "ok": true}"#, #"{"n":null,"ok":false}"#, #"{"ratio": 0.25}"#,
        #"{"ratio": 1234567.875}"#, #"{"ratio": 3}"#, #"{"to": {"name": "Zoë", "age": 31}}"#, #"{"to": {"name": ""}}"#,
        #"{"all": [{"name": "a"}, {"name": "b", "age": null}]}"#, #"{"all": []}"#, #"{"sizes": {"a": 1, "b": 2}}"#,
        #"{"marks": [1.5, null, 2]}"#, #"{"colour": "red"}"#, #"{"step": {"go": {}}}"#,
        #"{"step": {"wait": {"seconds": 3}}}"#,
        #"{"grid": [[1, 2], [], [3]], "more": {"deep": [{"n": 2}]}}"#, " { \"n\" :\t1 ,\n\"ok\" : true } ",
    ]
    private static let odd = [
        #"{"when": 1.5}"#, #"{"link": "https://example.org"}"#, #"{"data": "AAEC"}"#, #"{"price": 0.1}"#,
        #"{"n": 1.0}"#,
        #"{"n": 1e3}"#, #"{"ratio": 0.1000000000000000055511151231257827}"#, #"{"ratio": -0}"#, #"{"n": -0}"#,
        #"{"small": 0.1}"#, #"{"huge": 170141183460469231731687303715884105727}"#, #"{"n": 9223372036854775807}"#,
        #"{"n": 9223372036854775808}"#, #"{"to": {"name": "a\nb"}}"#, #"{"to": {"name": "a", "age": 256}}"#,
        #"{"to": {"age": 3}}"#, #"{"colour": "green"}"#, #"{"step": {"run": {}}}"#, #"{"n": "1"}"#, #"{"n": 01}"#,
        #"{"n": 1,}"#, #"{"n": 1} x"#, #"{"n": 1"#, #"{"n": .5}"#, #"{"n": 5.}"#, #"{"n": +5}"#, #"{"n": -}"#, "",
        "nul", "[1,]",
        #"{"n" 1}"#, #"{n: 1}"#, #"{"e": 1, "n": 1}"#, "{\"\u{212A}\": 1}", #"{"K": 1}"#,
        "{\"to\": {\"name\": \"\u{0}\"}}",
        #"[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]"#, #""text""#, "7", "true", "null", #"{"guess": 1}"#,
        #"{"guess": "x", "when": 1}"#,
    ]

    @Test(arguments: usual) func `what arguments mostly are is read`(_ text: String) {
        #expect(agrees(Mail.self, Array(text.utf8)))
    }

    @Test(arguments: odd) func `what is accepted is what JSONDecoder reads`(_ text: String) {
        agrees(Mail.self, Array(text.utf8))
        agrees(Curious.self, Array(text.utf8))
        agrees(Kelvin.self, Array(text.utf8))
        agrees([Int].self, Array(text.utf8))
        agrees([String: Int].self, Array(text.utf8))
        agrees(Int.self, Array(text.utf8))
        agrees(String.self, Array(text.utf8))
        agrees(Bool?.self, Array(text.utf8))
    }

    @Test func `a type that swallows a declined value is decoded again by JSONDecoder`() throws {
        #expect(FastArgumentDecoder.decode(Curious.self, from: Array(#"{"guess": 1.0}"#.utf8)) == nil)
        let decode = Handler.decoding(Letter.self)
        #expect(
            try decode(Array(#"{"at": 2, "note": "a\nb"}"#.utf8))
                == Letter(at: Date(timeIntervalSinceReferenceDate: 2), note: "a\nb"))
    }

    private struct Letter: Job, Equatable {
        static let kind = "test.brief"
        var at: Date?
        var note: String?
    }

    @Test(arguments: ["[]", "[1]", "[ 1 , 2,3 ]"]) func `a list says how long it is`(_ text: String) {
        #expect(agrees(Counted.self, Array(text.utf8)))
    }

    @Test func `long arguments are left to JSONDecoder`() {
        let note = String(repeating: "a", count: 600)
        #expect(FastArgumentDecoder.decode(Kelvin.self, from: Array(#"{"K": 1, "note": "\#(note)"}"#.utf8)) == nil)
    }

    @Test func `a text with a byte or two changed is read as JSONDecoder reads it, or not at all`() {
        var random = SystemRandomNumberGenerator()
        let bytes = Array(#"{}[]",:.-+0123456789eE\tfnul aKz"#.utf8) + [0, 0x80, 0xC3, 0xFF]
        var accepted = 0
        for text in Self.usual {
            for _ in 0..<300 {
                var text = Array(text.utf8)
                for _ in 0..<Int.random(in: 1...2, using: &random) {
                    let at = Int.random(in: 0..<text.count, using: &random)
                    let byte = bytes.randomElement(using: &random) ?? 0
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: text[at] = byte
                    case 1: text.insert(byte, at: at)
                    default: if text.count > 1 { text.remove(at: at) }
                    }
                }
                if agrees(Mail.self, text) { accepted += 1 }
            }
        }
        #expect(accepted > 100)
    }
}
