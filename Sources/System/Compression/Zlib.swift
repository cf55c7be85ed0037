import CZlib

/// zlib for the formats that we write.
package enum Zlib {
    /// Nil only without memory.
    /// - Parameter level: from 1, fast, to 9, small.
    package static func compressed(_ bytes: [UInt8], level: Int32 = 6) -> [UInt8]? {
        var size = compressBound(uLong(bytes.count))
        var packed = [UInt8](repeating: 0, count: Int(size))
        guard compress2(&packed, &size, bytes, uLong(bytes.count), level) == Z_OK else { return nil }
        return Array(packed.prefix(Int(size)))
    }

    package static func checksum(_ bytes: [UInt8]) -> UInt32 {
        UInt32(truncatingIfNeeded: crc32(0, bytes, uInt(bytes.count)))
    }
}
