package import Blobs
import FoundationEssentials
package import Jobs
import Pages
package import Postgres
import Sandbox
package import Telemetry

/// The document room of a worker: what comes in is looked at, read page by page, and made into what can be searched.
///
/// Which page is the last is counted under the document's lock, in the transaction that ends the page's run. A flow of the queue could
/// say so too, but its end is noted after the commit and told by whoever comes next; and pages that are read again after days would each
/// need another one. So a page that is written down is never read twice, and one that is not is nobody's but its job's.
package final class DocumentService: Sendable {
    package struct Options: Sendable {
        /// What a document may be computed on in all.
        package var documentCPU: Duration = .seconds(3600)
        /// Speaks as our own OCR program does.
        package var engine: String?
        /// How many engines stay warm.
        package var engines = 2
        package var spool = "/tmp"

        package init() {}
    }

    /// Brings what lies elsewhere to the blobs: a file of this machine, an address.
    package typealias Fetch =
        @Sendable (_ source: String, _ most: Int, _ store: any BlobStore) async throws -> (
            id: BlobID, size: Int
        )

    let table: DocumentStore
    let store: any BlobStore
    let workshop: DocumentPrograms
    let options: Options
    let fetch: Fetch
    let spool: FileCache
    package let shelf: IdleEngines
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
        spool = FileCache(directory: options.spool)
        let patience = EnginePriority {
            log.info(
                "others leave the engines next to no time: for ten minutes they stand back less", [("niceness", "5")])
        }
        shelf = IdleEngines(most: options.engines) { label in
            var own = workshop
            own.languages = label.languages
            return ChildEngine(own, program: options.engine.map { own.engine(at: $0) }, patience: patience)
        }
    }

    package static let kinds = ["document.receive", "document.page", "document.finish"]
    /// Pages have a queue of their own, so that they never keep a document from being looked at.
    package static let queues = (documents: "documents", pages: "documents.pages")

    package static func queue(of kind: String) -> String {
        kind == "document.page" ? queues.pages : queues.documents
    }

    package func run(_ args: [UInt8], _ context: Context) async throws -> Verdict {
        let given: DocumentJob.Args
        do {
            given = try JSONDecoder().decode(DocumentJob.Args.self, from: Data(args))
        } catch {
            return .discard("the arguments name no document")
        }
        let errand = DocumentJob(document: given.document, round: given.round, page: given.page, context: context)
        do {
            switch context.kind {
            case "document.receive": return try await receive(errand)
            case "document.finish": return try await finish(errand)
            default: return try await read(errand)
            }
        } catch let failure as DocumentFailure {
            if failure.isCancelled { throw CancellationError() }
            guard errand.isLast || !failure.mayGoWell else { return .retry(reason: failure.description) }
            return try await giveUp(errand, failure)
        } catch {
            // It lies with us. Whoever waits for the document is told once nobody will try again.
            guard errand.isLast, !Task.isCancelled, !(error is CancellationError) else { throw error }
            return try await giveUp(errand, DocumentFailure(DocumentRefusal(.internal, Self.sentence(error))))
        }
    }

    /// Until cancelled: documents whose jobs are gone end, and engines that nobody needs.
    package func watch(every pause: Duration = .seconds(10)) async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: pause) } catch { break }
            await shelf.tidy()
            do {
                let ended = try await table.check()
                if ended > 0 {
                    log.warning("documents or pages whose jobs were gone have ended", [("count", "\(ended)")])
                }
            } catch {
                log.warning("documents could not be looked after", [("error", "\(error)")])
            }
        }
        await shelf.close()
    }

    private func giveUp(_ errand: DocumentJob, _ failure: DocumentFailure) async throws -> Verdict {
        guard let page = errand.page else { return try await fail(errand, failure) }
        let isWritten = try await table.put(
            errand, [PageResult(Int(page), failure, cpu: failure.usage.cpu)], cpu: failure.usage.cpu, ends: true)
        return isWritten ? .recorded : .done
    }

    func fail(_ errand: DocumentJob, _ failure: DocumentFailure, cpu: Duration = .zero) async throws -> Verdict {
        log.info(
            "a document can not be read",
            [("document.id", errand.document), ("reason", failure.reason.rawValue), ("sentence", failure.sentence)])
        return try await table.end(
            errand, failure, isFailed: true, outputs: Array("[]".utf8), cpu: cpu + failure.usage.cpu)
            ? .recorded : .done
    }

    /// What may go well another time is tried a second time, and no more; for want of a program, as long as any job.
    func isWorthAnotherTry(_ failure: DocumentFailure, tries: Int) -> Bool {
        failure.mayGoWell && (failure.reason == .internal || tries < 1)
    }

    /// The document's own workshop.
    func workshop(for document: DocumentStore.Taken) -> DocumentPrograms {
        var own = workshop
        own.languages = document.languages
        own.dpiCap = min(Double(document.dpi), 600)
        return own
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
    /// Another program than ours, given the same.
    func engine(at path: String) -> SandboxedChild.Program {
        var own = program(.ocr, ["models=\(models)", "languages=\(languages.joined(separator: "+"))"])
        own.path = path
        return own
    }
}
