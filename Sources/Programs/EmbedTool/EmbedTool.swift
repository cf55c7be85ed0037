import Foundation

/// Usage: EmbedTool <output> <file.sql>…: writes a Swift file with the content of each.
@main struct EmbedTool {
    static func main() throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard let output = arguments.first else { return }
        var code = "enum Embedded {\n"
        for path in arguments.dropFirst() {
            let source = URL(filePath: path)
            let content = try String(contentsOf: source, encoding: .utf8)
            // As many number signs as no quote in it is followed by.
            var fence = "#"
            while content.contains("\"\"\"" + fence) || content.contains("\\" + fence) { fence += "#" }
            // A name that begins with digits is no name in Swift.
            let file = source.deletingPathExtension().lastPathComponent
            let name = (file.first?.isNumber == true ? "_" : "") + file
            code += "    static let \(name) = Array(\(fence)\"\"\"\n\(content)\n\"\"\"\(fence).utf8)\n"
        }
        code += "}\n"
        try code.write(toFile: output, atomically: true, encoding: .utf8)
    }
}
