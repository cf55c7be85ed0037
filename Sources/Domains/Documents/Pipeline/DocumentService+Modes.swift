import Blobs
import Pages
import Sandbox

// Pages whose own text counts in part, or not at all.

extension DocumentService {
    /// The file that pages of a mode are read from: for redo, one without invisible text. If that cannot be made, all of the text counts.
    nonisolated func readable(
        _ sheet: SharedFile, or drawable: SharedFile, _ blob: BlobID, _ inspection: Inspection,
        _ document: DocumentStore.Taken, _ mode: DocumentChoices.Mode, _ own: DocumentPrograms
    ) async throws -> SharedFile {
        guard mode == .redo, inspection.kind == .pdf, inspection.isOnlyDrawn != true else { return drawable }
        let all = Array(1...max(1, inspection.pages.count))
        do {
            return try await fileCache.rewritten(blob, as: .withoutInvisibleText) { output in
                _ = try await own.rewrite(
                    sheet.descriptor, inspection, withoutInvisibleText: all, into: output.descriptor,
                    password: document.password)
            }
        } catch let failure as DocumentFailure where !failure.isCancelled && !failure.mayGoWell {
            return drawable
        }
    }

    /// The pages whose visible text does not count: in a copy they are pictures of themselves, for it must not stand beside the text that was
    /// read. Invisible text is left out of a copy.
    ///
    /// - Parameter read: the pages that were read.
    nonisolated func replaced(
        _ sheet: SharedFile, _ blob: BlobID, _ inspection: Inspection, _ document: DocumentStore.Taken,
        _ read: [Int: PageText], _ own: DocumentPrograms
    ) async throws -> Worked<[Int]> {
        let dropped = read.filter { $0.value.dropped != nil }.keys.sorted()
        guard !dropped.isEmpty else { return Worked([], Usage()) }
        let rest = try await readable(sheet, or: sheet, blob, inspection, document, .redo, own)
        let left = try await own.ownText(rest.descriptor, inspection, pages: dropped, password: document.password)
        return Worked(dropped.filter { (left.value[$0]?.wordCount ?? 0) > 0 }, left.usage)
    }
}

extension DocumentFailure {
    /// What is told of a document that was read but for an output: programs crash over outputs, too.
    func ofOutput(_ kind: String) -> DocumentFailure {
        guard reason == .crash || reason == .killed else { return self }
        var failure = self
        failure.reason = .incomplete
        failure.sentence = "there is no \(kind): \(sentence)"
        return failure
    }
}
