import Foundation
import Testing

private func big(_ value: Int, _ size: Int = 4) -> [UInt8] {
    (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
}

private func little(_ value: Int, _ size: Int = 4) -> [UInt8] { big(value, size).reversed() }

/// Grey, a byte a pixel, packed without being made smaller.
func png(width: Int, height: Int, rows: [[UInt8]]) -> [UInt8] {
    func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(name.utf8) + data
        var crc: UInt32 = 0xffff_ffff
        for byte in body {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xedb8_8320 : crc >> 1 }
        }
        return big(data.count) + body + big(Int(~crc))
    }
    let raw: [UInt8] = rows.flatMap { (row: [UInt8]) -> [UInt8] in [0] + row }
    var data: [UInt8] = [0x78, 0x01]
    for start in stride(from: 0, to: raw.count, by: 65_535) {
        let part = raw[start..<min(raw.count, start + 65_535)]
        data.append(start + 65_535 >= raw.count ? 1 : 0)
        data += little(part.count, 2) + little(~part.count, 2) + Array(part)
    }
    var (low, high) = (1, 0)
    for byte in raw {
        low = (low + Int(byte)) % 65_521
        high = (high + low) % 65_521
    }
    return [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
        + chunk("IHDR", big(width) + big(height) + [8, 0, 0, 0, 0]) + chunk("pHYs", big(7874) + big(7874) + [1])
        + chunk("IDAT", data + big(high << 16 | low)) + chunk("IEND", [])
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

/// What a program of Debian's says.
func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, output: [UInt8]) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/\(program)")
    process.arguments = arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, Array(output))
}

func withPath<Result>(_ bytes: [UInt8], _ body: (String) throws -> Result) throws -> Result {
    let path = NSTemporaryDirectory() + "millrace-\(UUID().uuidString).pdf"
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try body(path)
}

func encrypted(_ bytes: [UInt8], user: String, owner: String) throws -> [UInt8] {
    try withPath(bytes) { path in
        let (status, output) = try run("qpdf", ["--encrypt", user, owner, "256", "--", path, "-"])
        try #require(status == 0)
        return output
    }
}
