/// Untrusted bytes, read with every bound checked.
/// Unchecked, but safe to send: it only reads, and the owner of the memory keeps it alive until the call returns.
package struct Bytes: @unchecked Sendable {
    package let memory: UnsafeRawBufferPointer

    package init(_ memory: UnsafeRawBufferPointer) {
        self.memory = memory
    }

    package var count: Int { memory.count }

    package func number(_ at: Int, _ size: Int, bigEndian: Bool = true) -> Int? {
        guard at >= 0, size <= 8, at <= count - size else { return nil }
        var value: UInt64 = 0
        for offset in 0..<size { value = value << 8 | UInt64(memory[at + (bigEndian ? offset : size - 1 - offset)]) }
        return Int(exactly: value)
    }

    package func starts(with text: String, at: Int = 0) -> Bool {
        guard at >= 0, at <= count - text.utf8.count else { return false }
        return zip(text.utf8, memory[at...]).allSatisfy { $0 == $1 }
    }

    package func slice(_ range: Range<Int>) -> UnsafeRawBufferPointer? {
        guard range.lowerBound >= 0, range.upperBound <= count else { return nil }
        return UnsafeRawBufferPointer(rebasing: memory[range])
    }
}

extension Kind {
    /// Judged by the first bytes. A PDF may have other bytes before it, as some mail programs leave them.
    package static func of(_ bytes: Bytes) -> Kind? {
        if bytes.number(0, 4) == 0x8950_4e47, bytes.number(4, 4) == 0x0d0a_1a0a { return .png }
        if bytes.number(0, 3) == 0xffd8ff { return .jpeg }
        if ["II*\0", "MM\0*", "II+\0", "MM\0+"].contains(where: { bytes.starts(with: $0) }) { return .tiff }
        if bytes.starts(with: "ftyp", at: 4) {
            let brands = ["heic", "heix", "heim", "heis", "hevc", "mif1", "msf1"]
            return brands.contains { bytes.starts(with: $0, at: 8) } ? .heic : nil
        }
        for offset in 0..<min(1024, bytes.count) where bytes.number(offset, 1) == 0x25 {
            if bytes.starts(with: "%PDF-", at: offset) { return .pdf }
        }
        return nil
    }
}
