import Blobs
package import Documents
import Glibc
import Jobs
import Pages
package import Postgres
import Sandbox
package import Supervision
package import Telemetry
package import Workers

/// The document room as this executable puts it together.
package struct DocumentWiring {
    package let service: DocumentService
    package let media: MediaService

    /// As many pages at once as there are cores: each keeps one busy.
    package static let cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

    package init(settings: Settings, workshop: DocumentPrograms, pool: Pool, supervisor: Supervisor, log: Log) {
        var options = DocumentService.Options()
        options.documentCPU = settings.duration(.documentCPU)
        options.engine = settings.text(.ocrEngine)
        options.engines = Self.cores
        options.cacheFolder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        service = DocumentService(
            pool: pool, store: settings.blobStore(pool: pool), workshop: workshop, options: options,
            fetch: DocumentFetch(supervisor: supervisor, directories: settings.documentDirectories).callAsFunction,
            log: log)
        media = MediaService(
            pool: pool, store: settings.blobStore(pool: pool), programs: workshop, folder: options.cacheFolder, log: log
        )
    }

    package var handlers: [Handler] {
        let documents = DocumentService.kinds.map { [service] kind in
            Handler(kind: kind, queue: DocumentService.queue(of: kind)) { args, context in
                try await service.run(args, context)
            }
        }
        let pictures = Handler(kind: MediaService.kind, queue: MediaService.queue) { [media] args, context in
            try await media.run(args, context)
        }
        return documents + [pictures]
    }

    /// New documents are inspected while pages are read. These bounds keep either kind of work from taking all slots.
    package static func bounds(slots: Int) -> [String: Int] {
        [
            DocumentService.queues.pages: min(slots, cores),
            DocumentService.queues.documents: min(slots, cores + 1),
            MediaService.queue: min(slots, cores),
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

extension Composer {
    /// The path of this very program, as the kernel has it.
    package static var ownPath: String {
        var path = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &path, path.count - 1)
        guard count > 0 else { return CommandLine.arguments.first ?? "millrace" }
        return String(decoding: path.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    package var workshop: DocumentPrograms { settings.workshop(beside: Self.ownPath) }

    /// Nil when the programs are not here: documents then wait for a worker that has them.
    package func documents(pool: Pool, supervisor: Supervisor) -> DocumentWiring? {
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
        return workshop.lacksPrograms
            ? nil
            : DocumentWiring(
                settings: settings, workshop: workshop, pool: pool, supervisor: supervisor,
                log: log)
    }
}
