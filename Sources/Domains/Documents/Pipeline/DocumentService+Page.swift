import Encodings
import FoundationEssentials
import MillraceJobs
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
        if document.waits { return .snooze(for: .seconds(1)) }
        let inspection = try JSONDecoder().decode(Inspection.self, from: Data(json))
        let mode = try document.choices().mode
        let original = try await fileCache.sheet(blob, from: store)
        var own = workshop(for: document)
        if document.tries > 0, document.trouble != .killed { own.dpiCap = cheaper(inspection.pages[page - 1], own) }
        job.context.progress(0, stage: "raster")
        var said: OwnPart?
        do {
            let splits = try document.choices().split == .separators
            let drawable = try await drawable(original, blob, inspection, own, password: document.password)
            let sheet = try await readable(original, or: drawable, blob, inspection, document, mode, own)
            said = try await ownPart(sheet, inspection, page, document, mode, own, &spent)
            if let text = said?.text, said?.junk == nil {
                var both = try await both(
                    text, isParted: said?.parted != nil, sheet, inspection, page, document, own, job, &spent)
                if splits {
                    let drawn = try await own.raster(
                        sheet.descriptor, inspection, page: page, password: document.password)
                    spent += drawn.usage.cpu
                    both = both.with(try await codes(in: drawn.value, own, document, &spent), drawn: drawn.value)
                }
                return try await put(job, PageResult(page, both, note: said?.note, cpu: spent), cpu: spent)
            }
            let drawn = try await own.raster(
                sheet.descriptor, inspection, page: page, password: document.password)
            spent += drawn.usage.cpu
            warn(drawn.refusedLayers)
            if PageAssessment(inspection.pages[page - 1], own: nil, drawn: drawn.value) == .blank {
                var text = try DocumentPrograms.checked(Usage()) { () throws(DocumentRefusal) in
                    try PageText(blank: drawn.value, of: inspection.pages[page - 1])
                }
                text.dropped = said?.dropped
                return try await put(job, PageResult(page, text, note: said?.note, cpu: spent), cpu: spent)
            }
            let found = try await codes(in: drawn.value, own, document, &spent)
            return try await recognise(drawn.value, found, page, said, document, job, &spent)
        } catch let failure as DocumentFailure {
            return try await again(job, page, failure, said?.text, document, spent)
        }
    }

    /// What a page says itself, and whether that counts.
    private struct OwnPart {
        var text: PageText?
        var dropped: PageText.Dropped?
        var junk: TextPlausibility.Junk?
        /// What speaks against a part of it, which `text` does not have.
        var parted: TextPlausibility.Junk?

        var note: String? {
            junk.map { "its own text is not believed, so its picture was read: \($0.rawValue)" }
                ?? parted.map { "a part of its own text is not believed, and was read in its picture: \($0.rawValue)" }
        }

        /// The page's own text, which was not believed, where its picture says even less.
        func better(
            than read: PageText, _ page: Int, _ codes: [PageCode], _ picture: Raster, cpu: Duration
        ) -> PageResult? {
            guard let text, let junk, TextPlausibility.counts(junk, before: read) else { return nil }
            return PageResult(
                page, text.with(codes, drawn: picture),
                note: "its own text seems wrong (\(junk.rawValue)), but even less of its picture can be read", cpu: cpu)
        }
    }

    private nonisolated func ownPart(
        _ sheet: SharedFile, _ inspection: Inspection, _ page: Int, _ document: DocumentStore.Taken,
        _ mode: DocumentChoices.Mode, _ own: DocumentPrograms, _ spent: inout Duration
    ) async throws -> OwnPart? {
        guard inspection.kind == .pdf else { return nil }
        guard mode != .force else { return OwnPart(dropped: .force) }
        do throws(DocumentFailure) {
            let texts = try await own.ownText(
                sheet.descriptor, inspection, pages: [page], password: document.password)
            spent += texts.usage.cpu
            guard let text = texts.value[page], text.wordCount > 0 else { return nil }
            guard let junk = TextPlausibility.junk(text) else {
                let parted = TextPlausibility.parted(text)
                return OwnPart(text: parted?.kept ?? text, parted: parted?.junk)
            }
            return OwnPart(text: text, dropped: .junk, junk: junk)
        } catch {
            // Its own text cannot be read; the page is drawn, and read by OCR if possible.
            if error.isCancelled || error.isKilled || error.reason == .internal { throw error }
            spent += error.usage.cpu
            return nil
        }
    }

    /// A page that was too much for a program may succeed at a lower resolution.
    private nonisolated func cheaper(_ page: Inspection.Page, _ own: DocumentPrograms) -> Double {
        let last = Raster.dpi(for: page, cap: own.dpiCap, mostPixels: own.mostPixels)
        return min(own.dpiCap, 150, max(Raster.caps.low, last / 2))
    }

    /// Puts a page off until another run, or writes down that it cannot be read.
    ///
    /// - Parameter said: what the page says itself.
    private nonisolated func again(
        _ job: DocumentJob, _ page: Int, _ failure: DocumentFailure, _ said: PageText?,
        _ document: DocumentStore.Taken, _ spent: Duration
    ) async throws -> Verdict {
        if failure.isCancelled || failure.mayGoWell && failure.reason == .internal { throw failure }
        let cpu = spent + failure.usage.cpu
        let isWorth = isWorthAnotherTry(failure, tries: document.tries, last: document.trouble)
        guard isWorth, !job.isLast else {
            // Its picture cannot be read, but its own text is there.
            if let said { return try await put(job, PageResult(page, said, cpu: cpu), cpu: cpu) }
            return try await put(job, PageResult(page, failure, cpu: cpu), cpu: cpu)
        }
        let result = PageResult(page, failure, again: true, cpu: cpu)
        guard try await table.put(job, [result], cpu: cpu, ends: true) else { return .done }
        // The kernel kills where the machine has too little memory; that may take a while to pass.
        let pause = failure.isKilled ? Duration.seconds(1 << min(document.tries, 5)) : .seconds(1)
        return .retry(after: pause, reason: failure.description)
    }

    /// The text that an engine reads in a picture, or the cached result for the same picture.
    private nonisolated func recognise(
        _ picture: Raster, _ codes: [PageCode], _ page: Int, _ said: OwnPart?, _ document: DocumentStore.Taken,
        _ job: DocumentJob,
        _ spent: inout Duration
    ) async throws -> Verdict {
        let label = IdlePageReaders.Label(tenant: document.tenant, languages: engineLanguages(document))
        let engine = await idleEngines.take(label)
        let key = PageFingerprint.key(picture, engine: engine.name)
        if let known = try await table.cached(key, tenant: document.tenant) {
            await idleEngines.put(engine, label)
            var text = try JSONDecoder().decode(PageText.self, from: Data(known)).with(codes, drawn: picture)
            if let better = said?.better(than: text, page, codes, picture, cpu: spent) {
                return try await put(job, better, cpu: spent)
            }
            text.dropped = said?.dropped
            let result = PageResult(
                page, text, key: Hexadecimal.text(key), isCached: true, note: said?.note, cpu: spent)
            return try await put(job, result, cpu: spent)
        }
        job.context.progress(0.1, stage: "ocr")
        var text: PageText
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
        if let better = said?.better(than: text, page, codes, picture, cpu: spent) {
            return try await put(job, better, cpu: spent)
        }
        text.dropped = said?.dropped
        let result = PageResult(
            page, text.with(codes, drawn: picture), key: Hexadecimal.text(key), note: said?.note, cpu: spent)
        return try await put(job, result, cpu: spent)
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
        _ said: PageText, isParted: Bool, _ sheet: SharedFile, _ inspection: Inspection, _ page: Int,
        _ document: DocumentStore.Taken, _ own: DocumentPrograms, _ job: DocumentJob, _ spent: inout Duration
    ) async throws -> PageText {
        let rest = try await own.remainder(
            sheet.descriptor, inspection, page: page, own: said, isParted: isParted, password: document.password)
        spent += rest.usage.cpu
        warn(rest.refusedLayers)
        guard let raster = rest.value else { return said }
        let found = try await codes(in: raster, own, document, &spent)
        job.context.progress(0.1, stage: "ocr")
        let label = IdlePageReaders.Label(tenant: document.tenant, languages: engineLanguages(document))
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
