import Foundation
import PackagePlugin

/// Puts every `.sql` file of a target into its code, as a text and not as a list of its bytes: the compiler takes minutes over those.
@main struct EmbedSQL: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: Target) throws -> [Command] {
        let files = (target.sourceModule?.sourceFiles.map(\.url) ?? [])
            .filter { $0.pathExtension == "sql" }.sorted { $0.path < $1.path }
        let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedScripts.swift")
        return [
            .buildCommand(
                displayName: "Embedding \(files.count) SQL files",
                executable: try context.tool(named: "EmbedTool").url,
                arguments: [output.path] + files.map(\.path), inputFiles: files, outputFiles: [output])
        ]
    }
}
