import Encodings
import FoundationEssentials
import Jobs
import Pages
import Sandbox

extension DocumentService {
    /// Draws one page and reads it, unless the cache has a result for the same picture.
    nonisolated func read(_ job: DocumentJob) async throws -> Verdict {
        guard let number = job.page, let document = try await table.take(job),
            let json = document.inspection, let blob = document.blob
        else { return .done }
        let page = Int(number)
        var spent = Duration.zero
        do throws(DocumentFailure) {
            try allowed(document)
        } catch {
            return try await put(job, PageResult(page, error, cpu: .zero), cpu: .zero)
        }
        let inspection = try JSONDecoder().decode(Inspection.self, from: Data(json))
        let original = try await fileCache.sheet(blob, from: store)
        var own = workshop(for: document)
        let sheet = try await drawable(original, blob, inspection, own, password: document.password)
        // A page that was too much for an engine may succeed at a lower resolution.
        if document.tries > 0 { own.dpiCap = min(own.dpiCap, 150) }
        job.context.progress(0, stage: "raster")
        var said: PageText?
        do throws(DocumentFailure) {
            if inspection.kind == .pdf, inspection.pages[page - 1].pictures > 0 {
                let texts = try await own.ownText(
                    sheet.descriptor, inspection, pages: [page], password: document.password)
                spent += texts.usage.cpu
                said = texts.value[page].flatMap { $0.wordCount > 0 ? $0 : nil }
            }
        } catch {
            // Its own text cannot be read; the page is drawn, and read by OCR if possible.
            if error.isCancelled || error.reason == .internal { throw error }
            spent += error.usage.cpu
        }
        do {
            if let said {
                let text = try await both(said, sheet, inspection, page, document, own, job, &spent)
                return try await put(job, PageResult(page, text, cpu: spent), cpu: spent)
            }
            let drawn = try await own.raster(
                sheet.descriptor, inspection, page: page, password: document.password)
            spent += drawn.usage.cpu
            warn(drawn.refusedLayers)
            if PageAssessment(inspection.pages[page - 1], own: nil, drawn: drawn.value) == .blank {
                let text = try DocumentPrograms.checked(Usage()) { () throws(DocumentRefusal) in
                    try PageText(blank: drawn.value, of: inspection.pages[page - 1])
                }
                return try await put(job, PageResult(page, text, cpu: spent), cpu: spent)
            }
            return try await recognise(drawn.value, page, document, job, &spent)
        } catch let failure as DocumentFailure {
            if failure.isCancelled || failure.mayGoWell && failure.reason == .internal { throw failure }
            let cpu = spent + failure.usage.cpu
            guard isWorthAnotherTry(failure, tries: document.tries), !job.isLast else {
                // Its picture cannot be read, but its own text is there.
                if let said { return try await put(job, PageResult(page, said, cpu: cpu), cpu: cpu) }
                return try await put(job, PageResult(page, failure, cpu: cpu), cpu: cpu)
            }
            guard
                try await table.put(
                    job, [PageResult(page, failure, again: true, cpu: cpu)], cpu: cpu, ends: true)
            else { return .done }
            return .retry(after: .seconds(1), reason: failure.description)
        }
    }

    /// The text that an engine reads in a picture, or the cached result for the same picture.
    private nonisolated func recognise(
        _ picture: Raster, _ page: Int, _ document: DocumentStore.Taken, _ job: DocumentJob, _ spent: inout Duration
    ) async throws -> Verdict {
        let label = IdleEngines.Label(tenant: document.tenant, languages: document.languages)
        let engine = await idleEngines.take(label)
        let key = PageFingerprint.key(picture, engine: engine.name)
        if let known = try await table.cached(key, tenant: document.tenant) {
            await idleEngines.put(engine, label)
            let text = try JSONDecoder().decode(PageText.self, from: Data(known))
            let result = PageResult(page, text, key: Hexadecimal.text(key), isCached: true, cpu: spent)
            return try await put(job, result, cpu: spent)
        }
        job.context.progress(0.1, stage: "ocr")
        let text: PageText
        do throws(DocumentFailure) {
            text = try await engine.read(picture) { percent in
                job.context.progress(0.1 + Double(percent) * 0.009, stage: "ocr")
            }
        } catch {
            await idleEngines.put(engine, label)
            throw error
        }
        spent += await engine.pageCPU
        await idleEngines.put(engine, label)
        return try await put(
            job, PageResult(page, text, key: Hexadecimal.text(key), cpu: spent), cpu: spent)
    }

    /// For a page with some text of its own and a picture: joins its text with the text read in the picture.
    private nonisolated func both(
        _ said: PageText, _ sheet: SharedFile, _ inspection: Inspection, _ page: Int, _ document: DocumentStore.Taken,
        _ own: DocumentPrograms, _ job: DocumentJob, _ spent: inout Duration
    ) async throws -> PageText {
        let rest = try await own.remainder(
            sheet.descriptor, inspection, page: page, own: said, password: document.password)
        spent += rest.usage.cpu
        warn(rest.refusedLayers)
        guard let raster = rest.value else { return said }
        job.context.progress(0.1, stage: "ocr")
        let label = IdleEngines.Label(tenant: document.tenant, languages: document.languages)
        let engine = await idleEngines.take(label)
        let outcome: Result<PageText, DocumentFailure>
        do throws(DocumentFailure) {
            outcome = .success(try await engine.read(raster, finds: false))
            spent += await engine.pageCPU
        } catch {
            outcome = .failure(error)
        }
        await idleEngines.put(engine, label)
        return PageText(own: said, read: try outcome.get(), on: inspection.pages[page - 1])
    }

    private nonisolated func put(_ job: DocumentJob, _ result: PageResult, cpu: Duration) async throws -> Verdict {
        try await table.put(job, [result], cpu: cpu, ends: true) ? .recorded : .done
    }

    private nonisolated func allowed(_ document: DocumentStore.Taken) throws(DocumentFailure) {
        if document.cpu >= options.documentCPU {
            throw DocumentFailure(
                DocumentRefusal(
                    .quota, "the document has been computed on for \(options.documentCPU), as long as it may"))
        }
        if let left = document.cpuLeft, left <= 0 {
            throw DocumentFailure(
                DocumentRefusal(.quota, "the tenant's quota of cpu_seconds for this period is used up"))
        }
    }
}
