import Pages
import Testing

@Suite struct EmbeddedProfileTests {
    private let profile = (0..<300).map { UInt8(truncatingIfNeeded: $0 * 7) }

    private func found(_ file: [UInt8], _ kind: FileFormat, directory: Int = 0) -> EmbeddedProfile? {
        file.withUnsafeBytes { EmbeddedProfile.find(in: Bytes($0), kind, directory: directory) }
    }

    private func big(_ value: Int, _ size: Int = 4) -> [UInt8] {
        (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    @Test func `the segments of a JPEG are joined in the order of their numbers`() {
        func segment(_ number: UInt8, _ part: ArraySlice<UInt8>, of total: UInt8 = 2) -> [UInt8] {
            [0xff, 0xe2] + big(part.count + 16, 2) + Array("ICC_PROFILE\0".utf8) + [number, total] + part
        }
        let head: [UInt8] = [0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2]
        let end: [UInt8] = [0xff, 0xda, 0, 2]
        let (first, second) = (segment(1, profile[..<200]), segment(2, profile[200...]))
        #expect(found(head + second + first + end, .jpeg) == .plain(profile))
        #expect(found(head + first + end, .jpeg) == nil, "a part is missing")
        #expect(found(head + end + first + second, .jpeg) == nil, "they stand behind the picture's beginning")
        #expect(found(head + segment(1, profile[..<50], of: 1) + end, .jpeg) == nil, "no profile is so short")
    }

    @Test func `that of a PNG is packed, and one of a WebP or a TIFF is not`() {
        let chunk = Array("iCCP".utf8) + Array("name\0\0".utf8) + profile
        let png = [UInt8](repeating: 1, count: 8) + big(profile.count + 6) + chunk + big(0)
        #expect(found(png, .png) == .packed(profile))
        #expect(found(Array(png.dropLast(60)), .png) == nil, "it ends before its end")
        let webp = Array("RIFF0000WEBPICCP".utf8) + big(profile.count).reversed() + profile
        #expect(found(webp, .webp) == .plain(profile))
        #expect(found(Array(webp.dropLast(1)), .webp) == nil)
        // A directory with one field.
        let tiff = Array("MM\0*".utf8) + big(8) + big(1, 2) + big(34_675, 2) + big(7, 2) + big(profile.count) + big(22)
        #expect(found(tiff + profile, .tiff, directory: 8) == .plain(profile))
        #expect(found(tiff + profile.dropLast(), .tiff, directory: 8) == nil)
        #expect(found(tiff + profile, .tiff, directory: 1 << 40) == nil)
        #expect(found(profile, .bmp) == nil)
    }
}
