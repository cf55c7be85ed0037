/// The ICC profile that a picture's file holds: in which colours its numbers are.
package enum EmbeddedProfile: Sendable, Equatable {
    case plain([UInt8])
    /// As a PNG keeps it, by zlib.
    case packed([UInt8])

    private static let most = 16 << 20

    /// nil: the file has none. Its colours are those of sRGB then, as programs that show pictures suppose.
    ///
    /// - Parameter directory: where that of a TIFF's frame begins
    package static func find(in bytes: Bytes, _ kind: FileFormat, directory: Int = 0) -> EmbeddedProfile? {
        switch kind {
        case .jpeg: jpeg(bytes)
        case .png: png(bytes)
        case .webp: webp(bytes)
        case .tiff: PictureHeader.profile(bytes, directory: directory).flatMap { plain(bytes, $0) }
        // The decoder of HEIC and AVIF tells it itself. GIF and BMP hold none.
        case .heic, .avif, .jp2, .gif, .bmp, .pdf: nil
        }
    }

    private static func plain(_ bytes: Bytes, _ range: Range<Int>) -> EmbeddedProfile? {
        guard range.count >= 128, range.count <= most, let found = bytes.slice(range) else { return nil }
        return .plain(Array(found))
    }

    /// In segments, each with its number and how many they are.
    private static func jpeg(_ bytes: Bytes) -> EmbeddedProfile? {
        var (at, parts, total) = (2, [Int: Range<Int>](), 0)
        for _ in 0..<4096 {
            guard let marker = bytes.number(at, 2), let length = bytes.number(at + 2, 2), length >= 2,
                marker > 0xff00, marker != 0xffd9, marker != 0xffda
            else { break }
            if marker == 0xffe2, bytes.starts(with: "ICC_PROFILE\0", at: at + 4), length > 16,
                let number = bytes.number(at + 16, 1), let count = bytes.number(at + 17, 1)
            {
                parts[number] = at + 18..<at + 2 + length
                total = count
            }
            at += 2 + length
        }
        guard total > 0 else { return nil }
        var profile: [UInt8] = []
        for number in 1...total {
            guard let part = parts[number].flatMap({ bytes.slice($0) }) else { return nil }
            profile += part
        }
        return profile.count >= 128 && profile.count <= most ? .plain(profile) : nil
    }

    private static func png(_ bytes: Bytes) -> EmbeddedProfile? {
        var at = 8
        for _ in 0..<64 {
            guard let length = bytes.number(at, 4), !bytes.starts(with: "IDAT", at: at + 4) else { return nil }
            if bytes.starts(with: "iCCP", at: at + 4), length <= most, let part = bytes.slice(at + 8..<at + 8 + length),
                let end = part.prefix(80).firstIndex(of: 0), end + 2 < part.count, part[end + 1] == 0
            {
                return .packed(Array(part[(end + 2)...]))
            }
            at += 12 + length
        }
        return nil
    }

    private static func webp(_ bytes: Bytes) -> EmbeddedProfile? {
        var at = 12
        for _ in 0..<64 {
            guard let length = bytes.number(at + 4, 4, bigEndian: false) else { return nil }
            if bytes.starts(with: "ICCP", at: at) { return plain(bytes, at + 8..<at + 8 + length) }
            at += 8 + length + length % 2
        }
        return nil
    }
}
