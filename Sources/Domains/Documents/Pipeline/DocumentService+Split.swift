import Blobs
import FoundationEssentials
import MillraceJobs
import Pages
import Sandbox

extension DocumentService {
    /// More parts than a stack of paper has.
    private static let mostParts = 500

    /// Makes a document of each part between separators. What a killed run has made is found again by its parent and pages.
    ///
    /// - Returns: false: the document is no longer being worked on.
    nonisolated func split(
        _ sheet: SharedFile, _ inspection: Inspection, _ document: DocumentStore.Taken, _ own: DocumentPrograms,
        _ job: DocumentJob, _ spent: inout Duration
    ) async throws -> Bool {
        job.context.progress(0, stage: "split")
        var separators: [Int: PageSeparator] = [:]
        for (page, codes) in try await table.codes(job.document) { separators[page] = PageSeparator(codes) }
        let parts = PageSeparator.parts(pages: inspection.pages.count, separators)
        guard parts.count <= Self.mostParts else {
            throw DocumentFailure(
                DocumentRefusal(.quota, "the document has \(parts.count) parts, more than \(Self.mostParts)"))
        }
        for (index, pages) in parts.enumerated() {
            try Task.checkCancellation()
            var part = DocumentStore.Part(pages: pages, title: Self.title(document.title, index + 1, of: parts.count))
            switch try await table.part(job, part) {
            case .over: return false
            case .there: continue
            case .missing: break
            }
            let output = try await fileCache.blank()
            let made = try await own.extract(
                sheet.descriptor, inspection, pages: pages, into: output.descriptor, password: document.password)
            spent += made.usage.cpu
            let (blob, size) = try await store.put(fileCache.pieces(of: output), limit: .max)
            part.content = (blob, size, Array(try JSONEncoder().encode(made.value)))
            guard try await table.part(job, part) == .there else { return false }
            job.context.progress(Double(index + 1) / Double(parts.count), stage: "split")
        }
        return true
    }

    /// Within the 500 characters of a title, the parent's is cut.
    static func title(_ parent: String?, _ number: Int, of count: Int) -> String {
        let numbered = " (\(number) of \(count))"
        let title = parent ?? "Document"
        return String(String.UnicodeScalarView(title.unicodeScalars.prefix(500 - numbered.unicodeScalars.count)))
            + numbered
    }
}
