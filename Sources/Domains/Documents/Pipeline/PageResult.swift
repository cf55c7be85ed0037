import FoundationEssentials
import Pages

/// The result of a page, in the form that the database takes.
struct PageResult: Encodable, Sendable {
    enum Status: String, Encodable, Sendable {
        case done, failed
        /// It waits for another run of its job.
        case again
    }

    var page: Int
    var status: Status
    var reason: String?
    var sentence: String?
    var text: String?
    var content: PageText?
    var key: String?
    var words: Int?
    var confidence: Double?
    var rotation: Int?
    var dpi: Double?
    var cpu_ms: Int32
    var cached = false
    /// The models it was read with, where they were found.
    var languages: [String]?

    /// - Parameter note: what an operator should know about a page that was read.
    init(_ page: Int, _ text: PageText, key: String? = nil, isCached: Bool = false, note: String? = nil, cpu: Duration)
    {
        let content = text.fitForPostgres
        self.page = page
        status = .done
        sentence = note
        self.text = content.text
        self.content = content
        self.key = key
        words = content.wordCount
        confidence = content.confidence
        rotation = content.rotation
        dpi = content.dpi
        cpu_ms = cpu.wholeMilliseconds
        cached = isCached
        languages = content.languages
        if let missing = content.missing, !missing.isEmpty {
            let needs = "it needs models that are not installed: \(missing.joined(separator: ", "))"
            sentence = [note, needs].compactMap(\.self).joined(separator: "; ")
        }
    }

    init(_ page: Int, _ failure: DocumentFailure, again: Bool = false, cpu: Duration) {
        self.page = page
        status = again ? .again : .failed
        reason = failure.reason.rawValue
        sentence = failure.sentence
        cpu_ms = cpu.wholeMilliseconds
    }

    static func json(_ results: [PageResult]) throws -> [UInt8] { Array(try JSONEncoder().encode(results)) }
}

extension PageText {
    /// Postgres can store every character but one (NUL).
    var fitForPostgres: PageText {
        guard
            text.unicodeScalars.contains("\0") || words.contains(where: { $0.text.unicodeScalars.contains("\0") })
                || codes?.contains(where: { $0.text.unicodeScalars.contains("\0") }) == true
        else { return self }
        var clean = self
        clean.flow = flow?.replacing("\0", with: "\u{FFFD}")
        for code in clean.codes?.indices ?? 0..<0 { clean.codes?[code].text.replace("\0", with: "\u{FFFD}") }
        for block in clean.blocks.indices {
            for line in clean.blocks[block].lines.indices {
                for word in clean.blocks[block].lines[line].words.indices {
                    clean.blocks[block].lines[line].words[word].text.replace("\0", with: "\u{FFFD}")
                }
            }
        }
        return clean
    }
}
