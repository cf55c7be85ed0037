import Glibc
package import Pages
package import Sandbox

// What is derived from a document. Nothing is handed out before other programs than its maker have opened it.

extension DocumentPrograms {
    /// How a searchable PDF is made, beginning with what keeps most of the original.
    package enum Making: String, Sendable, CaseIterable {
        /// The whole document, or an image as it is stored.
        case whole
        /// A new document of its pages.
        case pages
        /// Pictures of its pages.
        case drawn
    }

    /// Writes a searchable PDF to another file than its source. If the result cannot be opened again, or has other pages, it is made in
    /// another way.
    package func assemble(
        _ file: Int32, _ inspection: Inspection, texts: [Int: PageText], into output: Int32, password: String? = nil,
        ways: [Making]? = nil, choices: DocumentChoices = DocumentChoices(), title: String? = nil,
        replaced: [Int] = []
    ) async throws(DocumentFailure) -> Worked<Assembled> {
        var spent = Usage()
        var failure = DocumentFailure(DocumentRefusal(.internal, "there is no way to make a copy"))
        for way in ways ?? Self.ways(inspection) {
            do throws(DocumentFailure) {
                let plan = CopyPlan(
                    way: way, inspection: inspection, texts: texts, password: password, choices: choices, title: title,
                    replaced: replaced)
                let made = try await assemble(plan, file, into: output)
                spent = Worked((), spent).adding(made.usage)
                spent = Worked((), spent).adding(try await verify(output, pages: inspection.pages.count))
                return Worked(made.value, spent, refusedLayers: made.refusedLayers)
            } catch {
                spent = Worked((), spent).adding(error.usage)
                failure = error
                if !error.allowsAnotherMaking { break }
            }
        }
        failure.usage = spent
        throw failure
    }

    private static func ways(_ inspection: Inspection) -> [Making] {
        if inspection.isOnlyDrawn == true { return [.drawn] }
        switch inspection.kind {
        case .pdf: return [.whole, .pages, .drawn]
        case .png, .jpeg: return [.whole, .drawn]
        case .tiff, .heic, .avif, .gif, .bmp, .webp, .jp2: return [.drawn]
        }
    }

    private func assemble(
        _ plan: CopyPlan, _ file: Int32, into output: Int32
    ) async throws(DocumentFailure) -> Worked<Assembled> {
        var request = plan.request
        var pictures = Worked([UInt8](), Usage())
        if plan.way == .drawn {
            pictures = try await draw(file, &request, plan)
        } else {
            try await draw(plan.pagesToDraw, file, &request, &pictures, plan)
        }
        var (made, usage, refused) = try await ask(request, pictures.value, file, output)
        pictures.add(usage)
        if let unfit = made.unfit, !unfit.isEmpty, plan.way != .drawn, plan.inspection.kind == .pdf {
            let known = Set(request.pictures.map(\.page))
            try Self.checked(pictures.usage) { () throws(DocumentRefusal) in
                guard
                    unfit.allSatisfy({ plan.inspection.pages.indices.contains($0.page - 1) && !known.contains($0.page) }
                    )
                else { throw DocumentRefusal(.malformed, "a page that is a picture can not be in an archive") }
            }
            request.draws(unfit.map(\.page), plan.texts)
            try await draw(unfit.map(\.page), file, &request, &pictures, plan)
            (made, usage, refused) = try await ask(request, pictures.value, file, output)
            pictures.add(usage)
            made.unfit = (made.unfit ?? []).isEmpty ? nil : made.unfit
            made.facts = CopyFacts()
            made.facts?.drawn = unfit
        }
        try Self.checked(pictures.usage) { () throws(DocumentRefusal) in
            guard made.unfit?.isEmpty ?? true else {
                throw DocumentRefusal(.malformed, "the copy can not be an archive")
            }
            guard made.pages == plan.inspection.pages.count, made.bytes > 0, made.removed >= 0 else {
                throw DocumentRefusal(.malformed, "the copy has not as many pages as its original")
            }
        }
        made.facts = plan.facts(made)
        return Worked(made, pictures.usage, refusedLayers: refused)
    }

    private func ask(
        _ request: AssemblyRequest, _ pictures: [UInt8], _ file: Int32, _ output: Int32
    ) async throws(DocumentFailure) -> (Assembled, Usage, UInt32) {
        guard ftruncate(output, 0) == 0, lseek(output, 0, SEEK_SET) == 0 else {
            throw DocumentFailure(DocumentRefusal(.internal, "the file for the copy can not be written to"))
        }
        let (made, _, usage, refused) = try await ask(
            copy: .assemble(request), pictures, files: [file, output], as: Assembled.self)
        return (made, usage, refused)
    }

    /// The one way to the child that writes PDFs: it reads no other request.
    func ask<Head: Decodable & Sendable>(
        copy request: CopyRequest, _ body: [UInt8], files: [Int32], as head: Head.Type
    ) async throws(DocumentFailure) -> (head: Head, body: ArraySlice<UInt8>, usage: Usage, refusedLayers: UInt32) {
        try await ask(.assemble, request, body, files: files, as: head)
    }

    /// Opens a PDF that was made here as its readers will: by qpdf and by poppler, which share no code and have not written it.
    package func verify(_ output: Int32, pages: Int) async throws(DocumentFailure) -> Usage {
        var open = self
        // Of our own making, and perhaps larger than what we accept.
        open.quotas.bytes = 1 << 30
        open.quotas.pages = .max
        open.quotas.pixels = .max
        let usage: Usage
        let found: [Int]
        let isSound: Bool
        do throws(DocumentFailure) {
            let probed = try await open.probe(output)
            let drawn = try await open.pagesToDraw(output)
            usage = probed.adding(drawn.usage)
            found = [probed.value.pages.count, drawn.value.pages.count]
            isSound = [probed.value.isRepaired, probed.value.isOnlyDrawn, probed.value.hasWrongCount].allSatisfy {
                $0 != true
            }
        } catch {
            // Whatever was found wrong with it is not the original's fault.
            guard !error.isCancelled, !error.mayGoWell, error.reason != .timeout else { throw error }
            throw DocumentFailure(
                DocumentRefusal(.malformed, "what was made can not be opened again: \(error.sentence)"),
                usage: error.usage)
        }
        guard found == [pages, pages], isSound else {
            throw DocumentFailure(
                DocumentRefusal(
                    .malformed,
                    "what was made is damaged, or has \(found[0]) and \(found[1]) pages for two readers and not \(pages)"
                ), usage: usage)
        }
        return usage
    }
}

extension DocumentPrograms {
    /// A report as a PDF.
    package func report(_ report: Report, into output: Int32) async throws(DocumentFailure) -> Worked<Reported> {
        try await reported(.report(report), into: output)
    }

    /// Pages from the small HTML as a PDF. The pictures' bytes follow each other.
    package func pages(
        _ design: PageDesign, _ pictures: [UInt8], into output: Int32
    ) async throws(DocumentFailure) -> Worked<Reported> {
        try await reported(.design(design), pictures, into: output)
    }

    private func reported(
        _ request: ReportRequest, _ body: [UInt8] = [], into output: Int32
    ) async throws(DocumentFailure) -> Worked<Reported> {
        let (reported, _, usage, refused) = try await ask(.report, request, body, files: [output], as: Reported.self)
        try Self.checked(usage) { () throws(DocumentRefusal) in
            guard reported.bytes > 0, reported.pages > 0 else { throw DocumentRefusal(.crash, "the report is empty") }
        }
        let spent = Worked((), usage).adding(try await verify(output, pages: reported.pages))
        return Worked(reported, spent, refusedLayers: refused)
    }
}

extension DocumentFailure {
    /// Whether a copy that failed so may succeed when it is made in another way. A program that crashed over the original need not crash
    /// over its pages.
    var allowsAnotherMaking: Bool {
        !isCancelled && (!mayGoWell || reason == .crash) && reason != .timeout && reason != .encrypted
            && reason != .wrongPassword
    }
}
