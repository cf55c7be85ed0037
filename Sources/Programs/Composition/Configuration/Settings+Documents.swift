package import Documents
import Jobs
import Pages

extension Setting {
    package static let documents: [Setting] = [
        children, tessdata, ocrEngine, documentBytes, documentPages, documentPixels, documentPageCPU, documentCPU,
        documentDirectories,
    ]

    package static let children = Setting(
        "children", .path, valueName: "DIR",
        help: "The directory of the programs that read documents, such as millrace-probe; beside millrace if not given."
    )
    package static let tessdata = Setting(
        "tessdata", .path, fallback: DocumentPrograms.usualModels, valueName: "DIR",
        help: "The directory of the language models, such as eng.traineddata.")
    package static let ocrEngine = Setting(
        "ocr-engine", .path, valueName: "PROGRAM",
        help: "A program that reads pages' pictures instead of millrace-ocr, with the same protocol.")
    package static let documentBytes = amount(
        "document-bytes", 1...1_000_000_000_000, fallback: "100MB", "How large a document may be.")
    package static let documentPages = Setting(
        "document-pages", .integer(1...100_000), fallback: "2000", valueName: "N", help: "The most pages of a document."
    )
    package static let documentPixels = amount(
        "document-pixels", 1_000_000...1_000_000_000, fallback: "100M", "How many pixels a picture may have.")
    package static let documentPageCPU = Setting(
        "document-page-cpu", .duration(.seconds(1) ... .seconds(3600)), fallback: "60s", valueName: "DURATION",
        help: "How much CPU time a page may take.")
    package static let documentCPU = Setting(
        "document-cpu", .duration(.seconds(1) ... .seconds(604_800)), fallback: "1h", valueName: "DURATION",
        help: "How much CPU time a document may take in all.")

    package static let documentDirectories = Setting(
        "document-dirs",
        .custom(expects: DocumentDirectories.expectation) { text in
            DocumentDirectories(text) == nil
                ? "takes \(DocumentDirectories.expectation), and neither / nor one in /proc, /sys or /dev" : nil
        }, valueName: "DIR[:DIR…]",
        help: "The directories where a worker may read files that an admin names as file:<path>; none if not given.")

    private static func amount(_ name: String, _ range: ClosedRange<Int>, fallback: String, _ help: String) -> Setting {
        Setting(
            name,
            .custom(expects: "an amount such as 500K, 100MB or 2GB") { text in
                guard let amount = AmountText.read(text) else {
                    return "takes an amount such as 500K, 100MB or 2GB, not \(Secrets.quoted(text))"
                }
                return range.contains(amount) ? nil : "takes an amount from \(range.lowerBound) to \(range.upperBound)"
            }, fallback: fallback, valueName: "AMOUNT", help: help)
    }
}

/// Amounts as people write them: thousands, millions and thousands of millions.
package enum AmountText {
    package static func read(_ text: String) -> Int? {
        var digits = Substring(text.uppercased())
        if digits.hasSuffix("B") { digits = digits.dropLast() }
        let factors: [Character: Int] = ["K": 1000, "M": 1_000_000, "G": 1_000_000_000]
        var factor = 1
        if let last = digits.last, let found = factors[last] {
            factor = found
            digits = digits.dropLast()
        }
        guard let number = Int(digits), !digits.hasPrefix("+"), number >= 0 else { return nil }
        let (amount, isTooMuch) = number.multipliedReportingOverflow(by: factor)
        return isTooMuch ? nil : amount
    }
}

extension Settings {
    /// The most bytes of a document, and of an upload by a link.
    package var largestDocument: Int { AmountText.read(string(.documentBytes)) ?? 100_000_000 }

    package var documentDirectories: DocumentDirectories {
        text(.documentDirectories).flatMap { DocumentDirectories($0) } ?? DocumentDirectories()
    }

    /// - Parameter program: this program; the others are looked for beside it.
    package func workshop(beside program: String) -> DocumentPrograms {
        var environment = ["MILLRACE_TESSDATA": string(.tessdata)]
        environment["MILLRACE_CHILDREN"] = text(.children)
        var workshop = DocumentPrograms(environment: environment, beside: program)
        workshop.quotas.bytes = largestDocument
        workshop.quotas.pages = integer(.documentPages)
        workshop.quotas.pixels = AmountText.read(string(.documentPixels)) ?? workshop.quotas.pixels
        workshop.pageCPU = duration(.documentPageCPU)
        return workshop
    }
}
