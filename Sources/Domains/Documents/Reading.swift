package import Pages
package import Sandbox

/// Reads a whole document at once and keeps nothing between pages: for tools and tests. A worker does the same page by page.
package struct DocumentReading: Sendable {
    package var inspection: Inspection
    package var texts: [Int: PageText] = [:]
    package var failures: [Int: DocumentFailure] = [:]
    package var usage: [DocumentPrograms.Stage: Usage] = [:]

    package init(_ inspection: Inspection) {
        self.inspection = inspection
    }

    /// What a page says itself, and what speaks against it.
    fileprivate struct Doubted {
        var text: PageText
        var junk: TextPlausibility.Junk

        /// nil: its picture says more.
        func kept(before read: PageText) -> PageText? { TextPlausibility.counts(junk, before: read) ? text : nil }
    }

    /// Takes out the text of pages that is not believed.
    fileprivate mutating func takeDoubted() -> [Int: Doubted] {
        var doubted: [Int: Doubted] = [:]
        for (page, text) in texts {
            guard let junk = TextPlausibility.junk(text) else { continue }
            doubted[page] = Doubted(text: text, junk: junk)
        }
        for page in doubted.keys { texts[page] = nil }
        return doubted
    }

    mutating func add(_ usage: Usage, to stage: DocumentPrograms.Stage) {
        self.usage[stage] = Worked((), self.usage[stage] ?? Usage()).adding(usage)
    }

    /// Keeps the page's own text where there is one, as a worker does when a picture cannot be read.
    fileprivate mutating func fail(_ page: Int, _ failure: DocumentFailure, own: PageText?) {
        if let own, !failure.isKilled, !failure.isCancelled {
            texts[page] = own
        } else {
            failures[page] = failure
        }
    }
}

extension DocumentPrograms {
    /// Reads as many pages at a time as there are engines.
    package func read(
        _ file: Int32, password: String? = nil, engines: [any PageReader],
        page done: (@Sendable (Int, PageText?) -> Void)? = nil
    ) async throws(DocumentFailure) -> DocumentReading {
        let probed = try await probe(file, password: password)
        let inspection = probed.value
        var reading = DocumentReading(inspection)
        reading.add(probed.usage, to: .probe)
        let sound = inspection.pages.indices.filter { inspection.pages[$0].refusal == nil }.map { $0 + 1 }
        for (index, page) in inspection.pages.enumerated() {
            if let refusal = page.refusal { reading.failures[index + 1] = DocumentFailure(refusal) }
        }
        do throws(DocumentFailure) {
            let found = try await ownText(file, inspection, pages: sound, password: password)
            reading.texts = found.value
            reading.add(found.usage, to: .raster)
        } catch {
            if error.isCancelled { throw error }
            reading.add(error.usage, to: .raster)
        }
        let doubted = reading.takeDoubted()
        let parted = reading.texts.compactMapValues { TextPlausibility.parted($0)?.kept }
        let own = reading.texts.merging(parted) { $1 }
        func isRead(_ page: Int) -> Bool {
            guard parted[page] == nil else { return false }
            return own[page].map { PageAssessment(inspection.pages[page - 1], own: $0) != .mixed } ?? false
        }
        for (page, text) in own where isRead(page) { done?(page, text) }
        let unread = sound.filter { !isRead($0) }
        let stage = Self.decoder(of: inspection.kind)
        await withTaskGroup(of: (Int, any PageReader, Result<PageText, DocumentFailure>, Usage).self) { group in
            var (left, free) = (unread[...], engines)
            while true {
                while !left.isEmpty, !free.isEmpty {
                    let (page, engine) = (left.removeFirst(), free.removeLast())
                    group.addTask {
                        var spent = Usage()
                        do throws(DocumentFailure) {
                            if let text = own[page] {
                                let rest = try await self.remainder(
                                    file, inspection, page: page, own: text, isParted: parted[page] != nil,
                                    password: password)
                                spent = rest.usage
                                guard let raster = rest.value else { return (page, engine, .success(text), spent) }
                                let read = try await engine.read(raster, finds: false, progress: nil)
                                let both = PageText(own: text, read: read, on: inspection.pages[page - 1])
                                return (page, engine, .success(both), spent)
                            }
                            let raster = try await self.raster(file, inspection, page: page, password: password)
                            spent = raster.usage
                            if PageAssessment(inspection.pages[page - 1], own: nil, drawn: raster.value) == .blank {
                                let text = try Self.checked(Usage()) { () throws(DocumentRefusal) in
                                    try PageText(blank: raster.value, of: inspection.pages[page - 1])
                                }
                                return (page, engine, .success(text), spent)
                            }
                            return (
                                page, engine, .success(try await engine.read(raster.value, finds: true, progress: nil)),
                                spent
                            )
                        } catch {
                            if spent == Usage() { spent = error.usage }
                            return (page, engine, .failure(error), spent)
                        }
                    }
                }
                guard let (page, engine, outcome, spent) = await group.next() else { break }
                free.append(engine)
                reading.add(spent, to: stage)
                switch outcome {
                case .success(let text): reading.texts[page] = doubted[page]?.kept(before: text) ?? text
                case .failure(let failure): reading.fail(page, failure, own: own[page])
                }
                done?(page, reading.texts[page])
            }
        }
        return reading
    }
}
