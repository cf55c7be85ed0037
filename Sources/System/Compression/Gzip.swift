/// gzip (RFC 1952): what zlib packs, between another head and another foot.
package enum Gzip {
    /// Nil only without memory.
    package static func compressed(_ bytes: [UInt8]) -> [UInt8]? {
        guard let packed = Zlib.compressed(bytes) else { return nil }
        // No name and no time: the same bytes give the same document.
        let head: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]
        let foot = little(Zlib.checksum(bytes)) + little(UInt32(truncatingIfNeeded: bytes.count))
        return head + packed.dropFirst(2).dropLast(4) + foot
    }

    private static func little(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
