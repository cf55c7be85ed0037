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

extension FileFormat {
    /// Judged by the first bytes. A PDF may have other bytes before it, as some mail programs leave them.
    package static func of(_ bytes: Bytes) -> FileFormat? {
        if bytes.number(0, 4) == 0x8950_4e47, bytes.number(4, 4) == 0x0d0a_1a0a { return .png }
        if bytes.number(0, 3) == 0xffd8ff { return .jpeg }
        if ["II*\0", "MM\0*", "II+\0", "MM\0+"].contains(where: { bytes.starts(with: $0) }) { return .tiff }
        if bytes.starts(with: "ftyp", at: 4) { return boxed(bytes) }
        if bytes.starts(with: "GIF87a") || bytes.starts(with: "GIF89a") { return .gif }
        if bytes.starts(with: "RIFF"), bytes.starts(with: "WEBP", at: 8) { return .webp }
        if bytes.number(0, 8) == 0x0000_000c_6a50_2020 || bytes.number(0, 4) == 0xff4f_ff51 { return .jp2 }
        // Two letters alone may also begin a text.
        if bytes.starts(with: "BM"), let head = bytes.number(14, 4, bigEndian: false),
            [12, 40, 52, 56, 64, 108, 124].contains(head)
        {
            return .bmp
        }
        for offset in 0..<min(1024, bytes.count) where bytes.number(offset, 1) == 0x25 {
            if bytes.starts(with: "%PDF-", at: offset) { return .pdf }
        }
        return nil
    }

    /// By its brands: the first is the main one, and of the general ones only the others tell.
    private static func boxed(_ bytes: Bytes) -> FileFormat? {
        func brand(_ at: Int, _ names: [String]) -> Bool { names.contains { bytes.starts(with: $0, at: at) } }
        let (av1, general) = (["avif", "avis"], ["mif1", "msf1", "miaf"])
        if brand(8, av1) { return .avif }
        if brand(8, ["heic", "heix", "heim", "heis", "hevc"]) { return .heic }
        guard brand(8, general) else { return nil }
        let end = min(bytes.number(0, 4) ?? 0, 256, bytes.count)
        return stride(from: 16, to: end, by: 4).contains { brand($0, av1) } ? .avif : .heic
    }

    /// What the formats of pictures and documents are called, for a sentence.
    package static let names = "PDF, PNG, JPEG, TIFF, HEIC, AVIF, GIF, BMP, WebP and JPEG 2000"

    /// What a file is that is none of these, in words, if its first bytes tell.
    package static func foreign(_ bytes: Bytes) -> String? {
        let starts: [(String, String)] = [
            ("PK\u{3}\u{4}", "an office file, or another ZIP"), ("{\\rtf", "an RTF file"), ("%!PS", "PostScript"),
            ("AT&TFORM", "DjVu"), ("8BPS", "a Photoshop file"), ("Rar!", "an archive"), ("7z", "an archive"),
        ]
        if let known = starts.first(where: { bytes.starts(with: $0.0) }) { return known.1 }
        if bytes.number(0, 4) == 0xd0cf_11e0 { return "an old office file, or a message of Outlook" }
        if bytes.number(0, 2) == 0x1f8b { return "an archive" }
        if bytes.number(0, 2) == 0xff0a || bytes.number(0, 8) == 0x0000_000c_4a58_4c20 { return "JPEG XL" }
        let head = String(decoding: bytes.memory.prefix(256), as: UTF8.self)
            .drop { $0.isWhitespace || $0 == "\u{FEFF}" }.lowercased()
        if ["<!doctype html", "<html"].contains(where: head.hasPrefix) { return "a web page" }
        if ["<?xml", "<svg"].contains(where: head.hasPrefix) { return "XML or SVG" }
        let fields = [
            "from", "received", "return-path", "delivered-to", "message-id", "mime-version", "subject", "date", "to",
            "x-mozilla-status", "dkim-signature", "content-type", "reply-to", "cc", "sender",
        ]
        if head.hasPrefix("from ") || fields.contains(where: { head.hasPrefix($0 + ":") }) { return "an e-mail" }
        return nil
    }
}
