import Foundation
import Testing

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
    ) throws {
        let files = try Self.files(of: target)
        #expect(files.count >= 5)
        for file in files {
            let complaint = target.take(Array(try Data(contentsOf: file)))
            #expect(complaint == nil, "\(file.lastPathComponent)")
        }
    }

    @Test func `every folder of inputs belongs to a target`() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(Set(folders) == Set(Target.allCases.map(\.rawValue)))
    }
}
