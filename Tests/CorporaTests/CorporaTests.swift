import Foundation
import TestSupport
import Testing
import Threads

@Suite struct CorporaTests {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().appending(
        path: "Corpora")

    static func files(of target: Target) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(
            at: folder.appending(path: target.rawValue), includingPropertiesForKeys: nil
        ).sorted { $0.path < $1.path }
    }

    @Test(arguments: Target.allCases) func `every kept input is read without a crash, and what is accepted comes back`(
        _ target: Target
    ) async throws {
        let files = try Self.files(of: target)
        #expect(files.count >= 5)
        for file in files {
            let bytes = Array(try Data(contentsOf: file))
            // A target may wait for what tasks do, so it keeps no thread of theirs.
            let complaint = await Threads.Thread.run(name: "corpora") { target.take(bytes) }
            #expect(complaint == nil, "\(file.lastPathComponent)")
        }
    }

    /// The fuzzer in short: what is signed, and the keys that check it.
    @Test(arguments: [Target.token, .keyset]) func `a changed input is read without a crash, and is not believed`(
        _ target: Target
    ) throws {
        let inputs = try Self.files(of: target).map { Array(try Data(contentsOf: $0)) }
        var random = SeededRandom(39)
        for _ in 0..<2000 {
            var input = inputs[random.below(inputs.count)]
            for _ in 0...random.below(4) where !input.isEmpty {
                let place = random.below(input.count)
                switch random.below(4) {
                case 0: input[place] = UInt8(truncatingIfNeeded: random.next())
                case 1: input.insert(contentsOf: input[place..<min(input.count, place + 9)], at: place)
                case 2: input.removeSubrange(place..<min(input.count, place + random.below(9)))
                default: input += inputs[random.below(inputs.count)].prefix(random.below(200))
                }
            }
            let complaint = target.take(input)
            #expect(complaint == nil, "\(String(decoding: input, as: UTF8.self))")
        }
    }

    @Test func `every folder of inputs belongs to a target`() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(Set(folders) == Set(Target.allCases.map(\.rawValue)))
    }
}
