import Foundation
import Sandbox
import TestSupport

/// The child that misbehaves on request.
func prisoner(_ arguments: String...) -> SandboxedChild.Program {
    let directory = Bundle.main.executableURL?.deletingLastPathComponent() ?? URL(fileURLWithPath: ".build/debug")
    let beside = directory.appendingPathComponent("Prisoner").path
    let path =
        FileManager.default.isExecutableFile(atPath: beside)
        ? beside
        : URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent(".build/debug/Prisoner").path
    return SandboxedChild.Program(path, arguments)
}

func ask(
    _ request: String, _ arguments: [String] = [], _ limits: SandboxedChild.Limits = .init(), files: [Int32] = []
) async throws -> String {
    var program = prisoner()
    program.arguments = arguments
    let (answer, _, _) = try await SandboxedChild.run(program, Array(request.utf8), limits: limits, files: files)
    return String(decoding: answer.payload, as: UTF8.self)
}

/// How it failed; nil when it did not.
func failure(
    of request: String, _ arguments: [String] = [], _ limits: SandboxedChild.Limits = .init(), files: [Int32] = []
) async -> ChildFailure? {
    try? await failure(as: ChildFailure.self) { _ = try await ask(request, arguments, limits, files: files) }
}
