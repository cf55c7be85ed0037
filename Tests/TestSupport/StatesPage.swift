import Foundation

/// The tables of sql/states.md.
package enum StatesPage {
    package static let text: String = {
        let root = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
        return String(decoding: FileManager.default.contents(atPath: "\(root)/sql/states.md") ?? Data(), as: UTF8.self)
    }()

    /// The table below a heading: row by row, each cell by its column.
    package static func table(_ heading: String) -> [(name: String, cells: [String: String])] {
        let section = text.components(separatedBy: "## \(heading)\n").dropFirst().first ?? ""
        let rows = section.components(separatedBy: "\n## ")[0].split(separator: "\n")
            .filter { $0.hasPrefix("| ") && !$0.hasPrefix("| ---") }
            .map { row in
                row.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false).map {
                    $0.trimmingCharacters(in: .whitespaces)
                }
            }
        guard let columns = rows.first else { return [] }
        return rows.dropFirst().map { row in (row[0], Dictionary(uniqueKeysWithValues: zip(columns, row))) }
    }
}
