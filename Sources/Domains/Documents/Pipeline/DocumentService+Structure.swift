import FoundationEssentials
import Pages

extension DocumentService {
    /// The document's text with its structure, page after page, so that memory holds few of them.
    nonisolated func written(
        _ format: StructureFormat, _ document: DocumentStore.Taken, _ job: DocumentJob
    ) async throws -> Output {
        let output = try await fileCache.blank()
        try await fileCache.append(Array(format.opening(title: document.title ?? "Document").utf8), to: output)
        var next = 1
        while true {
            let pages = try await table.contents(job.document, from: next, most: 25, onlyRead: false)
            for page in pages {
                try Task.checkCancellation()
                let text = try JSONDecoder().decode(PageText.self, from: Data(page.content))
                try await fileCache.append(Array(format.page(page.page, text).utf8), to: output)
            }
            guard let last = pages.last else { break }
            next = last.page + 1
        }
        try await fileCache.append(Array(format.closing.utf8), to: output)
        return try await stored(output, format.rawValue)
    }
}
