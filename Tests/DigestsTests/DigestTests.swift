import Digests
import Encodings
import Testing

@Suite struct DigestTests {
    @Test func `the hash is SHA-256, whole or in pieces`() {
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        #expect(Hexadecimal.text(SHA256Digest.of(Array("abc".utf8))) == known)
        let digest = SHA256Digest()
        digest.update(Array("a".utf8))
        digest.update([])
        digest.update(Array("bc".utf8))
        #expect(Hexadecimal.text(digest.finish()) == known)
    }

    @Test func `hexadecimal digits are read as they were written, and nothing else is read`() {
        let bytes = (0...255).map { UInt8($0) }
        #expect(Hexadecimal.bytes(Hexadecimal.text(bytes)) == bytes)
        for wrong in ["0", "0g", "AB", " 0", "é"] { #expect(Hexadecimal.bytes(wrong) == nil, "\(wrong)") }
        #expect(Hexadecimal.uuid(bytes.prefix(16)) == "00010203-0405-0607-0809-0a0b0c0d0e0f")
    }
}
