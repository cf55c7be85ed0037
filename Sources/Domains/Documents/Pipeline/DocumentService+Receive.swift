import Blobs
import FoundationEssentials
import MillraceJobs
import Pages
import Sandbox
import Telemetry

extension DocumentService {
    /// How many pages' own texts are read at once. Clients can read a batch as soon as it is stored.
    private static let batch = 25

    /// Fetches the document, inspects it, stores the text that it already contains, and enqueues the other pages; ends it if there are
    /// none.
    nonisolated func receive(_ job: DocumentJob) async throws -> Verdict {
        guard let document = try await table.take(job) else { return .done }
        job.context.progress(0, stage: "receive")
        guard let (blob, size) = try await content(of: document, job) else {
            return try await fail(job, DocumentFailure(DocumentRefusal(.internal, "there is nothing to be fetched")))
        }
        guard size <= workshop.quotas.bytes else {
            return try await fail(
                job,
                DocumentFailure(DocumentRefusal(.tooLarge, "the document has more than \(workshop.quotas.bytes) bytes"))
            )
        }
        if let verdict = try await judged(table.received(job, blob, size: size), of: "bytes", job) {
            return verdict
        }
        let sheet = try await fileCache.sheet(blob, from: store)
        let own = workshop(for: document)
        let inspection: Inspection
        if let known = document.inspection {
            inspection = try JSONDecoder().decode(Inspection.self, from: Data(known))
        } else {
            job.context.progress(0.1, stage: "inspect")
            let probed: Worked<Inspection>
            do throws(DocumentFailure) {
                probed = try await own.probe(sheet.descriptor, password: document.password)
            } catch {
                if error.isCancelled || isWorthAnotherTry(error, tries: job.context.attempt - 1) { throw error }
                return try await fail(job, error)
            }
            warn(probed.refusedLayers)
            inspection = probed.value
            let answer = try await table.inspected(
                job, inspection, json: Array(try JSONEncoder().encode(inspection)),
                refused: try Refused.json(inspection), cpu: probed.usage.cpu)
            if let verdict = try await judged(answer, of: "pages", job) { return verdict }
        }
        job.context.progress(0.3, stage: "classify")
        let drawable = try await drawable(sheet, blob, inspection, own, password: document.password)
        let choices = try document.choices()
        // Where separators are looked for, every page is drawn.
        let waiting = inspection.kind == .pdf && choices.split == .off ? try await table.waiting(job) : []
        // Pages whose own text counts, and those whose visible text does.
        for mode in [DocumentChoices.Mode.skip, .redo] {
            let pages = waiting.filter { choices.mode(of: $0) == mode }
            guard !pages.isEmpty else { continue }
            let sheet = try await readable(sheet, or: drawable, blob, inspection, document, mode, own)
            guard try await takeOwnTexts(pages, sheet, inspection, document, own, job) else { return .done }
        }
        // A document whose pages all have their own text needs no further job.
        if inspection.pages.allSatisfy({ $0.refusal == nil }), try await table.waiting(job).isEmpty {
            return try await finish(job, sheet)
        }
        return try await table.spread(job) ? .recorded : .done
    }

    private nonisolated func content(of document: DocumentStore.Taken, _ job: DocumentJob) async throws -> (
        BlobID, Int
    )? {
        if let blob = document.blob {
            guard let known = try await store.head(blob) else { throw BlobError.notFound(blob) }
            return (blob, known.size)
        }
        guard let source = document.source else { return nil }
        do {
            return try await fetch(source, workshop.quotas.bytes, store)
        } catch BlobError.tooLarge(let limit) {
            throw DocumentFailure(DocumentRefusal(.tooLarge, "the document has more than \(limit) bytes"))
        }
    }

    /// nil: continue.
    private nonisolated func judged(
        _ answer: DocumentStore.Reception, of quota: String, _ job: DocumentJob
    ) async throws -> Verdict? {
        switch answer {
        case .taken: return nil
        case .over: return .done
        case .quota:
            return try await fail(
                job,
                DocumentFailure(DocumentRefusal(.quota, "the tenant's quota of \(quota) for this period is used up")))
        case .malformed:
            return try await fail(
                job,
                DocumentFailure(DocumentRefusal(.malformed, "the document is not as large as it was said to be")))
        }
    }

    /// False: the document is no longer being worked on.
    private nonisolated func takeOwnTexts(
        _ waiting: [Int], _ sheet: SharedFile, _ inspection: Inspection, _ document: DocumentStore.Taken,
        _ own: DocumentPrograms, _ job: DocumentJob
    ) async throws -> Bool {
        var left = waiting[...]
        while !left.isEmpty {
            try Task.checkCancellation()
            let pages = Array(left.prefix(Self.batch))
            left = left.dropFirst(pages.count)
            let found: Worked<[Int: PageText]>
            do throws(DocumentFailure) {
                found = try await own.ownText(
                    sheet.descriptor, inspection, pages: pages, password: document.password)
            } catch {
                // A page whose own text cannot be read is drawn, and read by OCR if possible.
                if error.isCancelled || error.reason == .internal { throw error }
                continue
            }
            let share = found.usage.cpu / pages.count
            var results: [PageResult] = []
            var letters = 0
            for (page, text) in found.value.sorted(by: { $0.key < $1.key })
            where text.wordCount > 0 && PageAssessment(inspection.pages[page - 1], own: text) != .mixed
                && TextPlausibility.junk(text) == nil && TextPlausibility.parted(text) == nil
            {
                results.append(PageResult(page, text, cpu: share))
                letters += text.wordCount * 150 + text.text.utf8.count
                if letters > 8_000_000 {
                    guard try await table.put(job, results, cpu: .zero, ends: false) else { return false }
                    (results, letters) = ([], 0)
                }
            }
            guard try await table.put(job, results, cpu: found.usage.cpu, ends: false) else { return false }
        }
        return true
    }

    /// A page that the probe refused.
    private struct Refused: Encodable {
        var page: Int
        var reason: String
        var sentence: String

        static func json(_ inspection: Inspection) throws -> [UInt8] {
            let refused = inspection.pages.enumerated().compactMap { index, page in
                page.refusal.map { Refused(page: index + 1, reason: $0.reason.rawValue, sentence: $0.sentence) }
            }
            return Array(try JSONEncoder().encode(refused))
        }
    }

    nonisolated func warn(_ refusedLayers: UInt32) {
        guard refusedLayers != 0 else { return }
        log.warning(
            "the kernel refuses layers of the sandbox that reads documents; see millrace doctor",
            [("sandbox.refused", "\(refusedLayers)")])
    }
}
