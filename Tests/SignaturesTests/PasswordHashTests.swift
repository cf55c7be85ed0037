import Testing

@testable import Signatures

@Suite struct PasswordHashTests {
    /// Made by another program: Python's hashlib.scrypt.
    @Test(arguments: [
        (
            "correct horse battery",
            "scrypt$15$8$1$c2l4dGVlbiBieXRlIHNhbA$z0pmNxikajRIQDgJ5vvdUpH5peTztLqEz249ZD_EPd0"
        ),
        (
            "pässwörd für alle",
            "scrypt$14$8$2$AAECAwQFBgcICQoLDA0ODxAREhM$5AL84Rk8VsIwzjkAZ0y5uW0tBANllpCj8MSNY5yVg9U"
        ),
    ])
    func `a hash of another program fits its password only`(password: String, text: String) throws {
        let hash = try #require(PasswordHash(text))
        #expect(hash.matches(password))
        #expect(!hash.matches(password + " ") && !hash.matches("") && !hash.matches(password.uppercased()))
        #expect(hash.description == text)
    }

    @Test func `a new hash has a salt of its own, and is read again`() throws {
        let (one, two) = (PasswordHash.of("correct horse"), PasswordHash.of("correct horse"))
        #expect(one != two && one.description != two.description)
        #expect(try #require(PasswordHash(one.description)) == one)
        #expect(one.matches("correct horse") && two.matches("correct horse") && !one.matches("correct hors"))
        #expect(!PasswordHash.ofNobody.matches("") && !PasswordHash.ofNobody.matches("correct horse"))
    }

    @Test(arguments: [
        "", "scrypt", "bcrypt$15$8$1$c2l4dGVlbiBieXRlIHNhbA$z0pmNxikajRIQDgJ5vvdUpH5peTztLqEz249ZD_EPd0",
        // Costs that guess too fast or stop the machine.
        "scrypt$10$8$1$c2l4dGVlbiBieXRlIHNhbA$z0pmNxikajRIQDgJ5vvdUpH5peTztLqEz249ZD_EPd0",
        "scrypt$30$8$1$c2l4dGVlbiBieXRlIHNhbA$z0pmNxikajRIQDgJ5vvdUpH5peTztLqEz249ZD_EPd0",
        "scrypt$15$99$1$c2l4dGVlbiBieXRlIHNhbA$z0pmNxikajRIQDgJ5vvdUpH5peTztLqEz249ZD_EPd0",
        "scrypt$15$8$99$c2l4dGVlbiBieXRlIHNhbA$z0pmNxikajRIQDgJ5vvdUpH5peTztLqEz249ZD_EPd0",
        // A short salt, a short hash, signs that are none of base64url, something behind.
        "scrypt$15$8$1$c2l4$z0pmNxikajRIQDgJ5vvdUpH5peTztLqEz249ZD_EPd0",
        "scrypt$15$8$1$c2l4dGVlbiBieXRlIHNhbA$z0pm", "scrypt$15$8$1$c2l4dGVlbiBieXRlIHNhbA$",
        "scrypt$15$8$1$c2l4dGVlbiBieXRlIHNhbA==$z0pmNxikajRIQDgJ5vvdUpH5peTztLqEz249ZD_EPd0",
        "scrypt$15$8$1$c2l4dGVlbiBieXRlIHNhbA$z0pmNxikajRIQDgJ5vvdUpH5peTztLqEz249ZD_EPd0$",
    ])
    func `a text that is no hash of ours is refused`(text: String) {
        #expect(PasswordHash(text) == nil)
    }

    @Test func `base64url is read as RFC 4648 has it, and nothing else is`() {
        for (text, plain) in [
            ("", ""), ("Zg", "f"), ("Zm8", "fo"), ("Zm9v", "foo"), ("Zm9vYg", "foob"), ("Zm9vYmFy", "foobar"),
        ] {
            #expect(Base64URL.decode(text) == Array(plain.utf8) && Base64URL.encode(Array(plain.utf8)) == text)
        }
        #expect(Base64URL.decode("-_-_") == [0xFB, 0xFF, 0xBF])
        // A length that cannot be, padding, signs of the other alphabet, spaces, and bits that nothing stands for.
        for text in ["Z", "Zm9vY", "Zg==", "Zg=", "+/+/", "Zm 9v", "Zm9v\n", "Zh", "Zm9", "Zé", "Zm9v\0"] {
            #expect(Base64URL.decode(text) == nil, "\(text)")
        }
    }
}
