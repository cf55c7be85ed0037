import Blobs
import FoundationEssentials
import MillraceJobs
import Pages
import Sandbox

extension DocumentService {
    struct Output: Encodable {
        var kind: String
        var blob: String
        var size: Int
        var about: CopyFacts?
    }

    /// Makes the requested outputs from the pages. The original stays unchanged; outputs are stored beside it.
    ///
    /// - Parameter here: the original, if the run has it already.
    nonisolated func finish(_ job: DocumentJob, _ here: SharedFile? = nil) async throws -> Verdict {
        guard let document = try await table.take(job) else { return .done }
        guard let json = document.inspection, let blob = document.blob else {
            throw DocumentFailure(DocumentRefusal(.internal, "what was found out about the document before is gone"))
        }
        let inspection = try JSONDecoder().decode(Inspection.self, from: Data(json))
        let sheet = if let here { here } else { try await fileCache.sheet(blob, from: store) }
        let own = workshop(for: document)
        let drawable = try await drawable(sheet, blob, inspection, own, password: document.password)
        var outputs: [Output] = []
        var trouble: DocumentFailure?
        var spent = Duration.zero
        if try document.choices().split == .separators {
            guard try await table.stage(job, "split") else { return .done }
            do {
                guard try await split(sheet, inspection, document, own, job, &spent) else { return .done }
            } catch let failure as DocumentFailure {
                if failure.isCancelled || isWorthAnotherTry(failure, tries: job.context.attempt - 1) { throw failure }
                spent += failure.usage.cpu
                trouble = failure
                if document.policy == "strict" { return try await fail(job, failure, cpu: spent) }
            }
        }
        let kinds = ["pdf", "preview", "report"] + StructureFormat.allCases.map(\.rawValue)
        for (index, kind) in kinds.enumerated() where document.outputs.contains(kind) {
            let format = StructureFormat(rawValue: kind)
            let stage = kind == "pdf" ? "assemble" : format == nil ? kind : "report"
            job.context.progress(Double(index) / Double(kinds.count), stage: stage)
            guard try await table.stage(job, stage) else { return .done }
            do {
                let made: (output: Output, cpu: Duration)
                switch kind {
                case "pdf": made = try await searchable(sheet, blob, inspection, document, own, job)
                case "preview": made = try await preview(drawable, inspection, document, own)
                case "report":
                    let copy = outputs.first { $0.kind == "pdf" }?.about
                    made = try await report(inspection, document, own, blob, job, copy)
                default: made = (try await written(format ?? .markdown, document, job), .zero)
                }
                outputs.append(made.output)
                spent += made.cpu
            } catch let failure as DocumentFailure {
                if failure.isCancelled || isWorthAnotherTry(failure, tries: job.context.attempt - 1) {
                    throw failure
                }
                spent += failure.usage.cpu
                trouble = trouble ?? failure.ofOutput(kind)
                if document.policy == "strict" { return try await fail(job, failure, cpu: spent) }
            }
        }
        job.context.progress(0.95, stage: "publish")
        let isWritten = try await table.end(
            job, trouble, isFailed: false, outputs: Array(try JSONEncoder().encode(outputs)), cpu: spent)
        return isWritten ? .recorded : .done
    }

    private nonisolated func searchable(
        _ sheet: SharedFile, _ blob: BlobID, _ inspection: Inspection, _ document: DocumentStore.Taken,
        _ own: DocumentPrograms, _ job: DocumentJob
    ) async throws -> (output: Output, cpu: Duration) {
        let output = try await fileCache.blank()
        let choices = try document.choices()
        var spent = Duration.zero
        func make(
            _ texts: [Int: PageText], _ ways: [DocumentPrograms.Making]?, replaced: [Int] = []
        ) async throws -> Output {
            let made: Worked<Assembled>
            do throws(DocumentFailure) {
                made = try await own.assemble(
                    sheet.descriptor, inspection, texts: texts, into: output.descriptor, password: document.password,
                    ways: ways, choices: choices, title: document.title, replaced: replaced)
            } catch {
                spent += error.usage.cpu
                throw error
            }
            spent += made.usage.cpu
            var stored = try await stored(output, "pdf")
            stored.about = made.value.facts
            return stored
        }
        guard inspection.kind == .pdf else {
            return (try await make(try await texts(of: job, onlyRead: true), nil), spent)
        }
        // Pages keep the text that they have themselves. Only where they become pictures it is laid over them.
        let mayBecomePictures = choices.format == .archive || choices.clean
        if inspection.isOnlyDrawn != true {
            let read = try await texts(of: job, onlyRead: !mayBecomePictures)
            do {
                let replaced = try await replaced(sheet, blob, inspection, document, read, own)
                spent += replaced.usage.cpu
                return (try await make(read, [.whole, .pages], replaced: replaced.value), spent)
            } catch let failure as DocumentFailure {
                guard failure.allowsAnotherMaking else { throw failure }
            }
        }
        let all = try await texts(of: job, onlyRead: false)
        return (try await make(all, [.drawn]), spent)
    }

    private nonisolated func texts(of job: DocumentJob, onlyRead: Bool) async throws -> [Int: PageText] {
        var texts: [Int: PageText] = [:]
        var next = 1
        while true {
            let page = try await table.contents(job.document, from: next, most: 50, onlyRead: onlyRead)
            for one in page { texts[one.page] = try JSONDecoder().decode(PageText.self, from: Data(one.content)) }
            guard let last = page.last else { return texts }
            next = last.page + 1
        }
    }

    /// The first page that can be drawn, in the size of a screen.
    private nonisolated func preview(
        _ sheet: SharedFile, _ inspection: Inspection, _ document: DocumentStore.Taken, _ own: DocumentPrograms
    ) async throws -> (output: Output, cpu: Duration) {
        let page = (inspection.pages.firstIndex { $0.refusal == nil } ?? 0) + 1
        var coarse = own
        coarse.dpiCap = Raster.caps.low
        let drawn = try await coarse.raster(sheet.descriptor, inspection, page: page, password: document.password)
        let picture: [UInt8]
        do throws(DocumentRefusal) {
            picture = try Preview.png(drawn.value)
        } catch {
            throw DocumentFailure(error, usage: drawn.usage)
        }
        let id = try await store.put(picture)
        return (Output(kind: "preview", blob: id.description, size: picture.count), drawn.usage.cpu)
    }

    private nonisolated func report(
        _ inspection: Inspection, _ document: DocumentStore.Taken, _ own: DocumentPrograms, _ blob: BlobID,
        _ job: DocumentJob, _ copy: CopyFacts?
    ) async throws -> (output: Output, cpu: Duration) {
        var pages: [Report.Page] = []
        var letters = 0
        var next = 1
        reading: while true {
            let some = try await table.contents(job.document, from: next, most: 50, onlyRead: false)
            for one in some {
                letters += one.text.utf8.count
                guard letters < 1_000_000 else { break reading }
                pages.append(.init(heading: "Page \(one.page)", text: one.text))
            }
            guard let last = some.last else { break }
            next = last.page + 1
        }
        var facts: [Report.Fact] = [
            .init("Kind", inspection.kind.mimeType), .init("Pages", "\(document.pages)"),
            .init("Read", "\(document.done)"), .init("Failed", "\(document.failed)"),
            .init("Languages", document.languages.joined(separator: ", ")),
            .init("Size", "\(document.size ?? 0) bytes"), .init("SHA-256", blob.description),
            .init("Signed", document.isSigned ? "yes; the original is as it was" : "no"),
        ]
        if !inspection.active.isEmpty {
            facts.append(.init("Taken out of the copy", inspection.active.joined(separator: ", ")))
        }
        facts += copy?.reported ?? []
        let output = try await fileCache.blank()
        let made = try await own.report(
            Report(title: document.title ?? "Document", facts: facts, pages: pages), into: output.descriptor)
        return (try await stored(output, "report"), made.usage.cpu)
    }

    nonisolated func stored(_ sheet: SharedFile, _ kind: String) async throws -> Output {
        let (id, size) = try await store.put(fileCache.pieces(of: sheet), limit: .max)
        return Output(kind: kind, blob: id.description, size: size)
    }
}

extension CopyFacts {
    /// For the report.
    var reported: [Report.Fact] {
        var facts: [Report.Fact] = []
        if format != nil { facts.append(.init("Copy", "PDF/A-2b")) }
        if let drawn, !drawn.isEmpty {
            let pages = drawn.prefix(50).map { "\($0.page) (\($0.cause.rawValue))" }.joined(separator: ", ")
            facts.append(.init("Pages drawn as pictures", drawn.count > 50 ? "\(pages), …" : pages))
        }
        if isDrawn == true { facts.append(.init("Pages drawn as pictures", "all")) }
        for (name, pages) in [("Pages cleaned", cleaned), ("Pages levelled", levelled)] {
            if let pages { facts.append(.init(name, "\(pages.count)")) }
        }
        if let pictures {
            facts.append(
                .init(
                    "Pictures",
                    "\(pictures.before) bytes, in the copy \(pictures.after): \(pictures.replaced) of \(pictures.count) are smaller"
                ))
        }
        return facts
    }
}
