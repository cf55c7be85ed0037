import Encodings
import FoundationEssentials
import Jobs
import Pages
import Sandbox
import Telemetry

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
        let splits = try document.choices().split == .separators
        do throws(DocumentFailure) {
            if inspection.kind == .pdf, inspection.pages[page - 1].pictures > 0 || splits {
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
                var text = try await both(said, sheet, inspection, page, document, own, job, &spent)
                if splits {
                    let drawn = try await own.raster(
                        sheet.descriptor, inspection, page: page, password: document.password)
                    spent += drawn.usage.cpu
                    let found = try await codes(in: drawn.value, own, document, &spent)
                    text = text.with(found, drawn: drawn.value)
                }
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
            let found = try await codes(in: drawn.value, own, document, &spent)
            return try await recognise(drawn.value, found, page, document, job, &spent)
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
        _ picture: Raster, _ codes: [PageCode], _ page: Int, _ document: DocumentStore.Taken, _ job: DocumentJob,
        _ spent: inout Duration
    ) async throws -> Verdict {
        let label = IdleEngines.Label(tenant: document.tenant, languages: engineLanguages(document))
        let engine = await idleEngines.take(label)
        let key = PageFingerprint.key(picture, engine: engine.name)
        if let known = try await table.cached(key, tenant: document.tenant) {
            await idleEngines.put(engine, label)
            let text = try JSONDecoder().decode(PageText.self, from: Data(known)).with(codes, drawn: picture)
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
            job, PageResult(page, text.with(codes, drawn: picture), key: Hexadecimal.text(key), cpu: spent), cpu: spent)
    }

    /// The codes in a page's picture. A document that is to be split needs the program for it; elsewhere a page is only searched if it
    /// seems to have codes, and a failure of the program is no failure of the page.
    private nonisolated func codes(
        in picture: Raster, _ own: DocumentPrograms, _ document: DocumentStore.Taken, _ spent: inout Duration
    ) async throws -> [PageCode] {
        let splits = try document.choices().split == .separators
        guard splits || CodeGate.mayHaveCodes(picture) else { return [] }
        do throws(DocumentFailure) {
            let found = try await own.codes(in: picture)
            spent += found.usage.cpu
            return found.value
        } catch {
            spent += error.usage.cpu
            if error.isCancelled || splits && isWorthAnotherTry(error, tries: document.tries) { throw error }
            log.info("a page was not searched for codes", [("reason", error.description)])
            return []
        }
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
        let found = try await codes(in: raster, own, document, &spent)
        job.context.progress(0.1, stage: "ocr")
        let label = IdleEngines.Label(tenant: document.tenant, languages: engineLanguages(document))
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
            .with(found, drawn: raster)
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
