import ChildProtocol
import Testing

@Suite struct FrameTests {
    private static let longest: [Frame.Kind: Int] = [.result: 300, .note: 20]

    @Test func `frames come out as they went in, however the bytes are cut`() throws {
        let frames = [
            Frame(.result, Array("hello".utf8)), Frame(.note), Frame(.note, [1, 2, 3]),
            Frame(.result, [UInt8](repeating: 7, count: 300)),
        ]
        let bytes = frames.flatMap(\.bytes)
        for size in 1...bytes.count {
            var reader = FrameReader(longest: Self.longest)
            var found: [Frame] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                reader.take(bytes[start..<min(start + size, bytes.count)])
                while let frame = try reader.next() { found.append(frame) }
            }
            #expect(found == frames)
            #expect(reader.isAtBoundary)
        }
    }

    @Test func `what is too long or unknown is refused before a byte of it is kept`() {
        for (bytes, complaint) in [
            ([4, 0, 0, 0, 0x2d, 1, 0, 0], FrameReader.Complaint.tooLong(.result, 301)),
            ([3, 0, 0, 0, 21, 0, 0, 0], .tooLong(.note, 21)),
            ([4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], .tooLong(.result, 0xffff_ffff)),
            ([9, 0, 0, 0, 0, 0, 0, 0], .unknownKind(9)),
            ([2, 0, 0, 0, 0, 0, 0, 0], .unknownKind(2)),  // known, and not expected
        ] as [([UInt8], FrameReader.Complaint)] {
            var reader = FrameReader(longest: Self.longest)
            reader.take(bytes)
            #expect(throws: complaint) { try reader.next() }
        }
    }

    @Test func `half a frame is not at a boundary`() throws {
        var reader = FrameReader(longest: Self.longest)
        #expect(reader.isAtBoundary)
        reader.take(Frame(.note, [1, 2, 3]).bytes.dropLast())
        #expect(try reader.next() == nil)
        #expect(!reader.isAtBoundary)
    }

    @Test func `any bytes give frames or a complaint, and never more than they hold`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            var reader = FrameReader(longest: Self.longest)
            var given = 0
            var kept = 0
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                // Small numbers, so that headers come about.
                let bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                    Bool.random(using: &generator) ? UInt8(0) : UInt8.random(in: 0...5, using: &generator)
                }
                given += bytes.count
                reader.take(bytes)
                while let frame = try? reader.next() { kept += frame.payload.count + Frame.headerSize }
            }
            #expect(kept <= given)
        }
    }
}
