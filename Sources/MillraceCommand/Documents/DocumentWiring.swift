import Blobs
import Documents
import Glibc
import Jobs
import Pages
import Postgres
import Sandbox
import Supervision
import Telemetry
import Workers

/// The document room as this executable puts it together.
struct DocumentWiring {
    let room: ReadingRoom

    /// As many pages at once as there are cores: each keeps one busy.
    static let cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

    init(settings: Settings, workshop: Workshop, pool: Pool, supervisor: Supervisor) {
        var options = ReadingRoom.Options()
        options.documentCPU = settings.duration(.documentCPU)
        options.engine = settings.text(.ocrEngine)
        options.engines = Self.cores
        options.spool = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        room = ReadingRoom(
            pool: pool, store: settings.blobStore(pool: pool), workshop: workshop, options: options,
            fetch: DocumentFetch(supervisor: supervisor, directories: settings.documentDirectories).callAsFunction,
            log: settings.log)
    }

    var handlers: [Handler] {
        ReadingRoom.kinds.map { [room] kind in
            Handler(kind: kind, queue: ReadingRoom.queue(of: kind)) { args, context in
                try await room.run(args, context)
            }
        }
    }

    /// Documents are looked at while pages are read, but not so many that nothing is.
    static func bounds(slots: Int) -> [String: Int] {
        [
            ReadingRoom.queues.pages: min(slots, cores),
            ReadingRoom.queues.documents: min(slots, cores + 1),
        ]
    }
}

/// A file's pieces, as they are asked for.
struct FilePieces: AsyncSequence, Sendable {
    let chunks: Chunks

    struct Iterator: AsyncIteratorProtocol {
        let chunks: Chunks

        func next() async throws -> [UInt8]? {
            let piece = try chunks.next()
            return piece.isEmpty ? nil : piece
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(chunks: chunks) }
}

extension Workshop {
    /// What is not there of the programs and of the model that is needed most.
    var missing: [String] {
        var missing = Stage.allCases.map { program($0).path }.filter { access($0, X_OK) != 0 }
        let model = "\(models)/\(languages.first ?? "eng").traineddata"
        if access(model, R_OK) != 0 { missing.append(model) }
        return missing
    }

    var lacksPrograms: Bool { Stage.allCases.contains { access(program($0).path, X_OK) != 0 } }
}

extension Invocation {
    /// The path of this very program, as the kernel has it.
    static var ownPath: String {
        var path = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &path, path.count - 1)
        guard count > 0 else { return CommandLine.arguments.first ?? "millrace" }
        return String(decoding: path.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    var workshop: Workshop { settings.workshop(beside: Self.ownPath) }

    /// Nil when the programs are not here: documents then wait for a worker that has them.
    func documents(pool: Pool, supervisor: Supervisor) -> DocumentWiring? {
        let workshop = workshop
        let missing = workshop.missing
        if !missing.isEmpty {
            settings.log.info(
                workshop.lacksPrograms
                    ? "documents are not read here: programs are missing" : "documents are read here without a model",
                [("missing", missing.joined(separator: " "))])
        }
        return workshop.lacksPrograms
            ? nil : DocumentWiring(settings: settings, workshop: workshop, pool: pool, supervisor: supervisor)
    }
}
