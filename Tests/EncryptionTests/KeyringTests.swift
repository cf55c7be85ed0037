import Foundation
import Testing

@testable import Encryption

@Suite struct KeyringTests {
    static let one = "one:" + Data(repeating: 1, count: 32).base64EncodedString()
    static let two = "two:" + Data(repeating: 2, count: 32).base64EncodedString()
    static let args = Array(#"{"card": "4111"}"#.utf8)

    @Test func `what is sealed opens again, is never the same twice, and does not show`() throws {
        let ring = try Keyring(Self.one)
        let first = try ring.seal(Self.args, kind: "card.charge")
        let second = try ring.seal(Self.args, kind: "card.charge")
        #expect(first != second)
        #expect(try ring.open(first, kind: "card.charge") == Self.args)
        #expect(!String(decoding: first, as: UTF8.self).contains("4111"))
        #expect(try ring.open(try ring.seal([], kind: "a"), kind: "a") == [])
    }

    @Test func `it opens for its own kind only`() throws {
        let ring = try Keyring(Self.one)
        let sealed = try ring.seal(Self.args, kind: "card.charge")
        #expect(throws: SealError.damaged(key: "one")) { try ring.open(sealed, kind: "card.refund") }
    }

    @Test func `another key does not open it, neither by another name nor by the same`() throws {
        let sealed = try Keyring(Self.one).seal(Self.args, kind: "a")
        #expect(throws: SealError.missingKey("one")) { try Keyring(Self.two).open(sealed, kind: "a") }
        #expect(throws: SealError.missingKey("one")) { try Keyring.empty.open(sealed, kind: "a") }
        let impostor = try Keyring("one:" + Data(repeating: 3, count: 32).base64EncodedString())
        #expect(throws: SealError.damaged(key: "one")) { try impostor.open(sealed, kind: "a") }
    }

    @Test func `each of several keys opens, and the first seals`() throws {
        let old = try Keyring(Self.one).seal(Self.args, kind: "a")
        let both = try Keyring("\(Self.two), \(Self.one) ")
        #expect(try both.open(old, kind: "a") == Self.args)
        let new = try both.seal(Self.args, kind: "a")
        #expect(try SealedEnvelope(new)?.key == "two")
        #expect(throws: SealError.missingKey("two")) { try Keyring(Self.one).open(new, kind: "a") }
    }

    @Test func `a change of any byte is noticed`() throws {
        let ring = try Keyring(Self.one)
        let envelope = try #require(try SealedEnvelope(try ring.seal(Self.args, kind: "a")))
        for index in envelope.data.indices {
            for bit in [UInt8(1), 0x80] {
                var data = envelope.data
                data[index] ^= bit
                let changed = SealedEnvelope(key: envelope.key, data: data).json
                #expect(throws: SealError.damaged(key: "one")) { try ring.open(changed, kind: "a") }
            }
        }
        for count in 0..<envelope.data.count {
            let cut = SealedEnvelope(key: envelope.key, data: Array(envelope.data.prefix(count))).json
            #expect(throws: SealError.self) { try ring.open(cut, kind: "a") }
        }
    }

    @Test(arguments: [
        #"{}"#, #"[1]"#, #""$millrace""#, #"["$millrace", "sealed"]"#, #"{"a": {"$millrace": "sealed"}}"#,
        #"{"$millrace": "other"}"#, #"{"$millrace": 7}"#, #"{"price": "$5", "$": "$millrac"}"#, "null", "nonsense", "",
    ])
    func `plain arguments stay as they are`(text: String) throws {
        #expect(try Keyring(Self.one).open(Array(text.utf8), kind: "a") == Array(text.utf8))
    }

    @Test(arguments: [
        #"{"$millrace": "sealed"}"#, #"{"$millrace": "sealed", "v": 2, "key": "one", "data": "AAAA"}"#,
        #"{"$millrace": "sealed", "v": 1, "key": "one", "data": "§"}"#,
        #"{"$millrace": "sealed", "v": 1, "key": "o n e", "data": "AAAA"}"#,
    ])
    func `what says that it is sealed and is not well formed is no plain text`(text: String) throws {
        #expect(throws: SealError.malformed) { try Keyring(Self.one).open(Array(text.utf8), kind: "a") }
    }

    @Test func `the order of the fields is the database's`() throws {
        let ring = try Keyring(Self.one)
        let text = String(decoding: try ring.seal(Self.args, kind: "a"), as: UTF8.self)
        let data = try #require(text.split(separator: "\"").dropLast().last)
        let stored = #"{"v": 1, "key": "one", "data": "\#(data)", "$millrace": "sealed"}"#
        #expect(try ring.open(Array(stored.utf8), kind: "a") == Self.args)
    }

    @Test func `a key without a name has one that everybody derives alike, and that does not show it`() throws {
        let bare = String(Self.one.dropFirst(4))
        let ring = try Keyring(bare)
        #expect(ring == (try Keyring(bare)))
        let id = ring.keys[0].id
        let other = try Keyring(String(Self.two.dropFirst(4))).keys[0].id
        #expect(id.count == 8 && id != other)
        #expect("\(ring.keys[0])" == "key \(id)")
    }

    @Test(arguments: [
        ("", "not base64 of 32 bytes"), ("secret-text", "not base64 of 32 bytes"),
        ("a:b:c", "more than one colon"), ("bad id:\(one.dropFirst(4))", "malformed"),
        ("\(one),", "key 2 of 2"), ("\(one),\(one)", "two keys are called one"),
        (Data(repeating: 1, count: 31).base64EncodedString(), "32 bytes"),
    ])
    func `a list that cannot be used is refused without repeating it`(list: String, complaint: String) {
        let error = #expect(throws: SealError.self) { try Keyring(list) }
        #expect(error?.description.contains(complaint) == true, "\(error?.description ?? "")")
        #expect(error?.description.contains("secret-text") == false)
    }

    @Test func `a new key is random, and usable as it is printed`() throws {
        let key = Key.random(id: "y2030")
        #expect(key != Key.random(id: "y2030"))
        #expect(try Keyring(key.spelled).keys == [key])
        #expect(Keyring.empty.keys.isEmpty)
        #expect(throws: SealError.noKey(kind: "a")) { try Keyring.empty.seal([], kind: "a") }
    }
}
