package import Blobs
import FoundationEssentials
package import MillraceJobs
import Pages
package import Postgres
import Sandbox
package import Telemetry

/// The document service of a worker: it inspects each incoming document, reads its pages one by one, and makes the searchable outputs.
///
/// The transaction that ends a page's run also counts, under the document's lock, whether it was the last page. A flow of the queue
/// could count too, but a flow's end is noted only after the commit, by the next session that looks; and pages that are read again days
/// later would each need a new flow. Counting here means that a stored page is never read twice, and an unstored page belongs only to
/// its job.
///
/// The actor keeps house in `run`. The jobs are not isolated, so that a page is read on each core; what they share is in actors of its own.
package actor DocumentService {
    package struct Options: Sendable {
        /// How much CPU time a whole document may take.
        package var documentCPU: Duration = .seconds(3600)
        /// An OCR program with the protocol of our own; nil: our own.
        package var engine: String?
        /// How many engines stay warm.
        package var engines = 2
        package var cacheFolder = "/tmp"

        package init() {}
    }

    /// Copies a document from a file of this machine or from an address into the blob store.
    package typealias Fetch =
        @Sendable (_ source: String, _ most: Int, _ store: any BlobStore) async throws -> (
            id: BlobID, size: Int
        )

    let table: DocumentStore
    let store: any BlobStore
    let workshop: DocumentPrograms
    let options: Options
    let fetch: Fetch
    let fileCache: FileCache
    package let idleEngines: IdlePageReaders
    let log: Log

    package init(
        pool: Pool, store: any BlobStore, workshop: DocumentPrograms, options: Options = Options(),
        fetch: @escaping Fetch,
        log: Log
    ) {
        table = DocumentStore(pool: pool)
        self.store = store
        self.workshop = workshop
        self.options = options
        self.fetch = fetch
        self.log = log
        fileCache = FileCache(directory: options.cacheFolder)
        let patience = EnginePriority {
            log.info(
                "OCR is starved of CPU; raising its priority for ten minutes", [("niceness", "5")])
        }
        idleEngines = IdlePageReaders(most: options.engines) { label in
            var own = workshop
            own.languages = label.languages
            return ChildPageReader(own, program: options.engine.map { own.engine(at: $0) }, patience: patience)
        }
    }

    package static let kinds = ["document.receive", "document.page", "document.finish"]
    /// Pages have their own queue, so that they never delay the inspection of a new document.
    package static let queues = (documents: "documents", pages: "documents.pages")

    package static func queue(of kind: String) -> String {
        kind == "document.page" ? queues.pages : queues.documents
    }

    package nonisolated func run(_ args: [UInt8], _ context: Context) async throws -> Verdict {
        let given: DocumentJob.Args
        do {
            given = try JSONDecoder().decode(DocumentJob.Args.self, from: Data(args))
        } catch {
            return .discard("the arguments name no document")
        }
        let job = DocumentJob(document: given.document, round: given.round, page: given.page, context: context)
        do {
            switch context.kind {
            case "document.receive": return try await receive(job)
            case "document.finish": return try await finish(job)
            default: return try await read(job)
            }
        } catch let refusal as FetchRefusal {
            return .snooze(for: refusal.wait)
        } catch let failure as DocumentFailure {
            if failure.isCancelled { throw CancellationError() }
            guard job.isLast || !failure.mayGoWell else { return .retry(reason: failure.description) }
            return try await giveUp(job, failure)
        } catch {
            // The cause is ours, not the document's. Clients are told only after the last attempt.
            guard job.isLast, !Task.isCancelled, !(error is CancellationError) else { throw error }
            return try await giveUp(job, DocumentFailure(DocumentRefusal(.internal, Self.sentence(error))))
        }
    }

    /// Until cancelled: ends documents whose jobs are gone, and stops idle engines.
    package func run(every pause: Duration = .seconds(10)) async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: pause) } catch { break }
            await idleEngines.tidy()
            do {
                let ended = try await table.check()
                if ended > 0 {
                    log.warning("ended documents or pages whose jobs were gone", [("count", "\(ended)")])
                }
            } catch {
                log.warning("cannot check the documents", [("error", "\(error)")])
            }
        }
        await idleEngines.close()
    }

    private nonisolated func giveUp(_ job: DocumentJob, _ failure: DocumentFailure) async throws -> Verdict {
        guard let page = job.page else { return try await fail(job, failure) }
        let isWritten = try await table.put(
            job, [PageResult(Int(page), failure, cpu: failure.usage.cpu)], cpu: failure.usage.cpu, ends: true)
        return isWritten ? .recorded : .done
    }

    nonisolated func fail(_ job: DocumentJob, _ failure: DocumentFailure, cpu: Duration = .zero) async throws -> Verdict
    {
        log.info(
            "a document cannot be read",
            [("document.id", job.document), ("reason", failure.reason.rawValue), ("sentence", failure.sentence)])
        return try await table.end(
            job, failure, isFailed: true, outputs: Array("[]".utf8), cpu: cpu + failure.usage.cpu)
            ? .recorded : .done
    }

    /// How often a page or a stage is begun again that was killed from outside.
    static let mostKills = 5

    /// A failure that may succeed on a retry is retried once; if a program was killed from outside, a few times; if one is missing, as
    /// often as any job.
    ///
    /// - Parameter last: why the try before this one failed, where that is known.
    nonisolated func isWorthAnotherTry(_ failure: DocumentFailure, tries: Int, last: Reason? = nil) -> Bool {
        guard failure.mayGoWell else { return false }
        if failure.reason == .internal { return true }
        if failure.isKilled { return tries < Self.mostKills }
        return tries < (last == .killed ? Self.mostKills : 1)
    }

    /// The programs with this document's own limits.
    nonisolated func workshop(for document: DocumentStore.Taken) -> DocumentPrograms {
        var own = workshop
        own.languages = engineLanguages(document)
        own.dpiCap = min(Double(document.dpi), 600)
        return own
    }

    /// What an engine for this document reads: auto, where no languages were given. Another engine than ours cannot find them.
    nonisolated func engineLanguages(_ document: DocumentStore.Taken) -> [String] {
        let isGiven = (try? document.choices())?.languages != .found
        return isGiven || document.languages != ["eng"] || options.engine != nil
            ? document.languages : DocumentPrograms.found
    }

    /// The file that pages are drawn from: the original, but for one whose page count is wrong.
    nonisolated func drawable(
        _ sheet: SharedFile, _ blob: BlobID, _ inspection: Inspection, _ own: DocumentPrograms, password: String?
    ) async throws -> SharedFile {
        guard inspection.hasWrongCount == true else { return sheet }
        return try await fileCache.rewritten(blob, as: .counted) { output in
            _ = try await own.assemble(
                sheet.descriptor, inspection, texts: [:], into: output.descriptor, password: password, ways: [.pages])
        }
    }

    private static func sentence(_ error: any Error) -> String {
        switch error {
        case let error as BlobError: error.description
        case let error as PostgresError: "the database: \(error.description)"
        default: "\(type(of: error))"
        }
    }
}

extension DocumentPrograms {
    /// Another OCR program than ours, with the same arguments.
    func engine(at path: String) -> SandboxedChild.Program {
        var own = program(.ocr, ["models=\(models)", "languages=\(languages.joined(separator: "+"))"])
        own.path = path
        return own
    }
}
