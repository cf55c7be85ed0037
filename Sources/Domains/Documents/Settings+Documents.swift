package import BlobKit
import Pages
package import RoomKit

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
}

extension Settings {
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
