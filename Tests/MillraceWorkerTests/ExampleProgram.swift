import Foundation

/// An example that is a program: beside the test bundle, where the build puts every product.
func exampleProgram(_ name: String) -> String {
    var directory = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
    for _ in 0..<6 {
        let candidate = directory.appending(path: name).path
        if FileManager.default.isExecutableFile(atPath: candidate) { return candidate }
        directory.deleteLastPathComponent()
    }
    return ".build/debug/\(name)"
}
