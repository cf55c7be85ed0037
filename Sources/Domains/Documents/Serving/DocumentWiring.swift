import BlobKit
import Blobs
import Glibc
import Postgres
package import RoomKit
import Sandbox
import Telemetry
import Workers

/// How documents are read in one worker.
package struct DocumentWiring {
    let service: DocumentService

    /// As many pages at once as there are cores: each keeps one busy.
    package static let cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

    static var cacheFolder: String { getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp" }

    init(_ context: RoomContext, workshop: DocumentPrograms) {
        let settings = context.settings
        let pool = Pool(context.database, size: Self.cores + 1)
        var options = DocumentService.Options()
        options.documentCPU = settings.duration(.documentCPU)
        options.engine = settings.text(.ocrEngine)
        options.engines = Self.cores
        options.cacheFolder = Self.cacheFolder
        let fetch = DocumentFetch(supervisor: context.supervisor, directories: settings.documentDirectories)
        service = DocumentService(
            pool: pool, store: settings.blobStore(pool: pool), workshop: workshop, options: options,
            fetch: fetch.callAsFunction, log: context.log)
    }

    var handlers: [Handler] {
        DocumentService.kinds.map { [service] kind in
            Handler(kind: kind, queue: DocumentService.queue(of: kind)) { args, context in
                try await service.run(args, context)
            }
        }
    }

    /// New documents are inspected while pages are read. These bounds keep either kind of work from taking all slots.
    static func bounds(slots: Int) -> [String: Int] {
        [
            DocumentService.queues.pages: min(slots, cores),
            DocumentService.queues.documents: min(slots, cores + 1),
        ]
    }
}

/// A file's pieces, read on demand.
package struct FilePieces: AsyncSequence, Sendable {
    package let chunks: FileChunks

    package init(chunks: FileChunks) {
        self.chunks = chunks
    }

    package struct Iterator: AsyncIteratorProtocol {
        package let chunks: FileChunks

        package func next() async throws -> [UInt8]? {
            let piece = try chunks.next()
            return piece.isEmpty ? nil : piece
        }
    }

    package func makeAsyncIterator() -> Iterator { Iterator(chunks: chunks) }
}

extension DocumentPrograms {
    /// Which of the programs and the most important model are missing.
    package var missing: [String] {
        var missing = Stage.allCases.map { program($0).path }.filter { access($0, X_OK) != 0 }
        let model = "\(models)/\(languages.first ?? "eng").traineddata"
        if access(model, R_OK) != 0 { missing.append(model) }
        return missing
    }

    /// Without them, pages with Chinese, Japanese or Korean text in predefined encodings fail.
    package var lacksCharacterTables: Bool { access("\(characterTables)/cMap", R_OK) != 0 }

    /// Without it documents are read, but for those that are to be split.
    package var lacksCodes: Bool { access(program(.codes).path, X_OK) != 0 }

    package var lacksPrograms: Bool { Stage.required.contains { access(program($0).path, X_OK) != 0 } }
}

extension Invocation {
    /// Where the programs are that read documents.
    package var workshop: DocumentPrograms { settings.workshop(beside: OwnProgram.path) }
}

extension RoomContext {
    package var workshop: DocumentPrograms { settings.workshop(beside: OwnProgram.path) }

    /// Nil when the programs are not here: documents then wait for a worker that has them.
    func documents() -> DocumentWiring? {
        let workshop = workshop
        let missing = workshop.missing
        if !missing.isEmpty {
            log.info(
                workshop.lacksPrograms
                    ? "documents are not read here: programs are missing"
                    : "documents are read here without a program for codes, or without a model",
                [("missing", missing.joined(separator: " "))])
        }
        if !workshop.lacksPrograms, workshop.lacksCharacterTables {
            log.warning(
                "pages with Chinese, Japanese or Korean text may fail here: the package poppler-data is missing",
                [("missing", "\(workshop.characterTables)/cMap")])
        }
        return workshop.lacksPrograms ? nil : DocumentWiring(self, workshop: workshop)
    }

    /// The same programs for media; nil when they are not here.
    package func media() -> MediaService? {
        let workshop = workshop
        guard !workshop.lacksPrograms else { return nil }
        let pool = Pool(database, size: DocumentWiring.cores + 1)
        return MediaService(
            pool: pool, store: settings.blobStore(pool: pool), programs: workshop,
            folder: DocumentWiring.cacheFolder, log: log)
    }
}
