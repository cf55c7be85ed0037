import Composition
import Foundation
import Testing

@testable import Documents

@Suite struct DocumentChecksTests {
    @Test func `the doctor says whom programs that read documents run as`() {
        let apart = DocumentCheck.judge(refusedLayers: 0, user: 1_879_048_199, ours: 0)
        #expect("\(apart)".contains("limits, user 1879048199, no new privileges"), "\(apart)")
        let same = DocumentCheck.judge(refusedLayers: 0, user: 1000, ours: 1000)
        #expect("\(same)".contains("limits, the user who starts it, no new privileges"), "\(same)")
        let refused = DocumentCheck.judge(refusedLayers: 8 | 32, user: 1000, ours: 1000)
        #expect("\(refused)".contains("the kernel refuses namespaces, seccomp"), "\(refused)")
    }

    @Test func `the doctor names poppler-data where it is missing`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("doctor-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let tables = folder.appendingPathComponent("cMap")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for name in DocumentPrograms.Stage.allCases.map({ "millrace-\($0.rawValue)" }) + ["eng.traineddata"] {
            let path = folder.appendingPathComponent(name).path
            _ = FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o755])
        }
        var programs = DocumentPrograms(children: folder.path, models: folder.path)
        programs.characterTables = folder.path
        let bare = DocumentCheck.judge(programs)
        #expect(bare.word == "warning" && bare.sentence.contains(tables.path), "\(bare)")
        #expect(bare.advice?.contains("install poppler-data") == true)
        try FileManager.default.createDirectory(at: tables, withIntermediateDirectories: true)
        #expect(DocumentCheck.judge(programs).word == "ok")
    }
}
