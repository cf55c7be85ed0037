import Foundation

/// What stands in deploy/observability.
enum Observability {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "deploy/observability")

    static func text(_ name: String) throws -> String {
        try String(contentsOf: folder.appending(path: name), encoding: .utf8)
    }

    /// The names of the alerts.
    static func alerts() throws -> [String] {
        try text("rules.yml").matches(of: /- alert: (\w+)/).map { String($0.1) }
    }
}
