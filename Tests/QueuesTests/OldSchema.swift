import Foundation
import Schema

/// The migrations of 0.1.0, up to version 74, as they were shipped: what a database was made by before rooms had lines of their own.
enum OldSchema {
    static var migrations: [Script] {
        get throws {
            let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Shipped/migrations")
            return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
                .sorted { $0.lastPathComponent < $1.lastPathComponent }
                .map { Script($0.deletingPathExtension().lastPathComponent, Array(try Data(contentsOf: $0))) }
        }
    }
}
