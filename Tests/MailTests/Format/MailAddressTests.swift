import TestSupport
import Testing

@testable import Mail

@Suite struct MailAddressTests {
    @Test(arguments: [
        ("ada@reader.example", nil, "ada@reader.example"),
        ("  ada@reader.example ", nil, "ada@reader.example"),
        ("Ada <ada@Reader.EXAMPLE>", "Ada", "ada@reader.example"),
        ("\"Lovelace, Ada\" <ada+x@reader.example>", "Lovelace, Ada", "ada+x@reader.example"),
        ("\"The \\\"A\\\"\" <a@b.example>", "The \"A\"", "a@b.example"),
        ("Jürgen <j@bücher.example>", "Jürgen", "j@xn--bcher-kva.example"),
        ("a@straße.example", nil, "a@xn--strae-oqa.example"), ("a@ＢＩＧ.example", nil, "a@big.example"),
        ("O'Neil <o'neil@x.example>", "O'Neil", "o'neil@x.example"), ("a@localhost", nil, "a@localhost"),
        ("Booking.com <a@mail.booking.com>", "Booking.com", "a@mail.booking.com"),
        ("<a@b.example>", nil, "a@b.example"),
        ("St. John <a@b.example>", "St. John", "a@b.example"), ("J.R.R. T <a@b.example>", "J.R.R. T", "a@b.example"),
    ])
    func `an address is read, and its domain is made ASCII`(text: String, name: String?, address: String) throws {
        #expect(try Mailbox.parse(text) == Mailbox(name: name, address: address))
        try Mailbox.parse(text).check()
    }

    @Test(arguments: [
        "", " ", "ada", "@x.example", "ada@", "a@b@c.example", "a b@x.example", "a@x.example, b@x.example",
        "a@x.example\r\nBcc: evil@x.example", "a\0@x.example", "a@x.exa\nmple", "<a@x.example", "a@x.example>",
        "x> <a@x.example>", "x <y> <a@x.example>", ".a@x.example", "a.@x.example", "a..b@x.example", "a@x..example",
        "a@-x.example", "a@x-.example", "a@[127.0.0.1]", "a@127.0.0.1", "é@x.example", "\"a b\"@x.example",
        "a@x_y.example", "a@" + String(repeating: "x", count: 64) + ".example",
        String(repeating: "a", count: 65) + "@x.example",
        "a@" + String(repeating: "x.", count: 130) + "example", "A, B <a@x.example>", "\"open <a@x.example>",
        "\"a\"b\" <a@x.example>", "a@x.example <a@x.example>", "Ada\u{202E} <a@x.example>", "A\u{200B}da <a@x.example>",
        "https://evil.example <a@x.example>", "www.evil.example <a@x.example>", "PayPal.com <a@x.example>",
        "paypal。com <a@x.example>", "you＠bank <a@x.example>", "Ada via Bank <a@x.example>",
        "Ada on behalf of Bank <a@x.example>", "a@xn--.example", "a@x.example\u{0}", "a@\u{202E}x.example",
    ])
    func `what is no address, or a trick, is refused`(text: String) {
        #expect(throws: Complaint.self) { try Mailbox.parse(text) }
    }

    @Test func `whatever the bytes, an address that is taken can not break out of its line`() {
        var random = SeededRandom(7)
        let alphabet = Array("aabb@@@..<> \"\\,\r\n\0é\u{202E}x-_;")
        var taken = 0
        for _ in 0..<40_000 {
            let text = String(
                (0..<Int.random(in: 1...14, using: &random)).map { _ in alphabet.randomElement(using: &random)! })
            guard let box = try? Mailbox.parse(text) else { continue }
            taken += 1
            #expect(box.address.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"<>\"\\,".utf8.contains($0) })
            #expect(box.address.split(separator: "@").count == 2)
            #expect(throws: Never.self) { try box.check() }
        }
        #expect(taken > 20)
    }

    @Test func `a complaint does not hold what it complains of`() {
        do {
            _ = try Mailbox.parse("secret name@secret.example")
            Issue.record("taken")
        } catch {
            #expect(!"\(error)".contains("secret"))
        }
    }
}
