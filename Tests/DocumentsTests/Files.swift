import CZlib
import Foundation
import TestSupport
import Testing

private func big(_ value: Int, _ size: Int = 4) -> [UInt8] {
    (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
}

private func little(_ value: Int, _ size: Int = 4) -> [UInt8] { big(value, size).reversed() }

/// Grey, a byte a pixel, packed without being made smaller.
func png(width: Int, height: Int, rows: [[UInt8]]) -> [UInt8] {
    func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(name.utf8) + data
        return big(data.count) + body + big(Int(crc32(0, body, uInt(body.count))))
    }
    var raw: [UInt8] = []
    for row in rows {
        raw.append(0)
        raw += row
    }
    var count = compressBound(uLong(raw.count))
    var data = [UInt8](repeating: 0, count: Int(count))
    compress2(&data, &count, raw, uLong(raw.count), 0)
    return [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
        + chunk("IHDR", big(width) + big(height) + [8, 0, 0, 0, 0]) + chunk("pHYs", big(7874) + big(7874) + [1])
        + chunk("IDAT", Array(data.prefix(Int(count)))) + chunk("IEND", [])
}

/// Frames of 100 × 100 over the same bytes.
func tiff(frames: Int, loops: Bool) -> [UInt8] {
    let start = 8 + 10_000
    var out = Array("II*\0".utf8) + little(start) + [UInt8](repeating: 0x80, count: 10_000)
    for frame in 0..<frames {
        let entries = [
            (256, 4, 100), (257, 4, 100), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1),
            (278, 4, 100),
            (279, 4, 10_000),
        ]
        let next = frame < frames - 1 ? out.count + 2 + 12 * entries.count + 4 : loops ? start : 0
        out += little(entries.count, 2)
        for (tag, type, value) in entries { out += little(tag, 2) + little(type, 2) + little(1) + little(value) }
        out += little(next)
    }
    return out
}

let heicHead = big(24) + Array("ftypheic".utf8) + big(0) + Array("mif1heic".utf8)

func withPath<Result>(_ bytes: [UInt8], _ body: (String) async throws -> Result) async throws -> Result {
    let path = NSTemporaryDirectory() + "millrace-\(UUID().uuidString).pdf"
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try await body(path)
}

func encrypted(_ bytes: [UInt8], user: String, owner: String) async throws -> [UInt8] {
    try await withPath(bytes) { path in
        let made = try await Program.run("qpdf", ["--encrypt", user, owner, "256", "--", path, "-"])
        try #require(made.status == 0)
        return Array(made.output)
    }
}
