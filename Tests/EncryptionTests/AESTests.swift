import Testing

@testable import Encryption

func bytes(_ hex: String) -> [UInt8] {
    stride(from: 0, to: hex.count, by: 2).compactMap { offset in
        let start = hex.index(hex.startIndex, offsetBy: offset)
        return UInt8(hex[start..<hex.index(start, offsetBy: 2)], radix: 16)
    }
}

@Suite struct AESTests {
    struct Vector: Sendable {
        var key = String(repeating: "0", count: 64)
        var nonce = String(repeating: "0", count: 24)
        var plain = ""
        var bound = ""
        var sealed: String
    }

    /// Test cases 13 to 16 of McGrew and Viega, "The Galois/Counter Mode of Operation": those with keys of 256 bits.
    static let vectors = [
        Vector(sealed: "530f8afbc74536b9a963b4f1c4cb738b"),
        Vector(
            plain: "00000000000000000000000000000000",
            sealed: "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"),
        Vector(
            key: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", nonce: "cafebabefacedbaddecaf888",
            plain:
                "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
            sealed:
                "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015adb094dac5d93471bdec1a502270e3cc6c"
        ),
        Vector(
            key: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", nonce: "cafebabefacedbaddecaf888",
            plain:
                "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
            bound: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            sealed:
                "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b"
        ),
    ]

    @Test(arguments: vectors)
    func `the published vectors are met, both ways`(vector: Vector) {
        let key = bytes(vector.key)
        let nonce = bytes(vector.nonce)
        let bound = bytes(vector.bound)
        #expect(AES.seal(bytes(vector.plain), key: key, nonce: nonce, bound: bound) == bytes(vector.sealed))
        #expect(AES.open(bytes(vector.sealed), key: key, nonce: nonce, bound: bound) == bytes(vector.plain))
    }

    @Test func `what is too short or has a key of another size does not open`() {
        let sealed = bytes(Self.vectors[1].sealed)
        let key = [UInt8](repeating: 0, count: 32)
        let nonce = [UInt8](repeating: 0, count: 12)
        #expect(AES.open(Array(sealed.prefix(15)), key: key, nonce: nonce, bound: []) == nil)
        #expect(AES.open([], key: key, nonce: nonce, bound: []) == nil)
        #expect(AES.open(sealed, key: Array(key.dropLast()), nonce: nonce, bound: []) == nil)
        #expect(AES.open(sealed, key: key, nonce: Array(nonce.dropLast()), bound: []) == nil)
    }
}
