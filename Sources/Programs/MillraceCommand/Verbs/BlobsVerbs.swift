import Blobs
import FoundationEssentials
import Glibc
import Postgres

extension Command {
    static let blobsPut = Command(
        ["blobs", "put"],
        summary: "Store a file's content, and print its hash",
        discussion: """
            Stores the content of a file, or of standard input for -, in pieces, of any size. Its id is its SHA-256; \
            the same content is stored once. A sweep deletes blobs without references a day after they were last put \
            or read. Applications may name the blob by its hash only if --role or --tenant says whose it is.
            """,
        arguments: [Argument("file", .one, .path, help: "the file, or - for standard input")],
        flags: [
            .single("role", "ROLE", environment: .none, help: "The client role that may name it."),
            .single(
                "tenant", "TENANT", environment: .none,
                help: "Only within this tenant; without --role, for any role."),
            Setting.blobs.flag,
        ],
        examples: [
            Example("millrace blobs put scan.pdf", "its id on standard output"),
            Example("millrace blobs put terms.pdf --role shop", "shop attaches it to mails by its hash"),
        ]
    ) { invocation in
        let name = invocation.parsed.string("file") ?? "-"
        return try await invocation.withBlobs { store in
            let chunks: FileChunks
            do throws(FileProblem) {
                chunks = try invocation.surroundings.chunks(name)
            } catch {
                throw Failure(.misused, "\(Secrets.quoted(name)): \(error.complaint)")
            }
            let (id, size) = try await store.put(Pieces(chunks: chunks), limit: .max)
            let (role, tenant) = (invocation.parsed.string("role"), invocation.parsed.string("tenant"))
            if role != nil || tenant != nil {
                try await store.pool.withConnection { connection throws(PostgresError) in
                    _ = try await BlobReferences.allow(id, role: role, tenant: tenant, on: connection)
                }
            }
            invocation.console.show(["id": .string(id.description), "size": .int(size)]) {
                invocation.console.print(id.description)
            }
            return .done
        }
    }

    static let blobsGet = Command(
        ["blobs", "get"],
        summary: "Write a blob's content to standard output, or to a file",
        discussion: "With --verify its hash is checked before anything is written.",
        arguments: [Argument("id", .one, .blobID, help: "the blob's id, its SHA-256")],
        flags: [
            .single("output", short: "o", "FILE", .path, environment: .none, help: "Write here; must not exist yet."),
            .toggle("verify", environment: .none, help: "Check the blob first."), Setting.blobs.flag,
        ],
        examples: [Example("millrace blobs get e3b0c442… -o scan.pdf", "back into a file")]
    ) { invocation in
        let id = try invocation.blobID
        return try await invocation.withBlobs { store in
            if invocation.parsed.isOn("verify") { try await store.verify(id) }
            guard try await store.head(id) != nil else { throw BlobError.notFound(id) }
            guard let path = invocation.parsed.string("output") else {
                try await store.read(id, range: nil) { try Self.write($0, to: STDOUT_FILENO) }
                return .done
            }
            try await NewFile.write(at: path) { descriptor in
                try await store.read(id, range: nil) { try Self.write($0, to: descriptor) }
            }
            return .done
        }
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) throws(Failure) {
        if let number = Descriptor.write(bytes, to: descriptor) {
            throw Failure("the content cannot be written: \(Descriptor.sentence(number))")
        }
    }

    static let blobsList = Command(
        ["blobs", "list"],
        summary: "List blobs by their id, with the number of references to each",
        flags: [
            .single("limit", "N", .integer(1...500), fallback: "50", help: "Show at most this many."),
            .single("after", "ID", .blobID, environment: .none, help: "Only entries after this one."),
            Setting.blobs.flag,
        ],
        examples: [Example("millrace blobs list --limit 500 --jsonl", "for a script")]
    ) { invocation in
        let limit = invocation.parsed.integer("limit") ?? 50
        return try await invocation.withBlobs { store in
            let blobs = try await store.list(
                after: invocation.parsed.string("after").flatMap { BlobID($0) }, page: limit)
            invocation.console.list("blobs", blobs.map(\.json), table: Blob.table(blobs))
            if blobs.count == limit, invocation.console.format == .human, let last = blobs.last {
                invocation.console.note("more may follow: --after \(last.id)")
            }
            return .done
        }
    }

    static let blobsSweep = Command(
        ["blobs", "sweep"],
        summary: "Delete blobs without references",
        discussion: """
            Deletes blobs that were not put, read or released within --grace, and the remains of interrupted puts. \
            Blobs with references are never touched. --dry-run shows what would be deleted.
            """,
        flags: [
            .single(
                "grace", "DURATION", .duration(.seconds(3600) ... .seconds(31_536_000)), environment: .none,
                fallback: "1d",
                help: "How long a blob without references is kept."),
            .toggle("dry-run", environment: .none, help: "Only show the findings."), Setting.blobs.flag,
        ],
        examples: [Example("millrace blobs sweep --dry-run", "what nobody refers to any more")]
    ) { invocation in
        let grace = invocation.parsed.duration("grace") ?? .seconds(86_400)
        return try await invocation.withBlobs { store in
            if invocation.parsed.isOn("dry-run") {
                var all: [Blob] = []
                while case let page = try await store.forsaken(grace: grace, after: all.last?.id), !page.isEmpty {
                    all += page
                }
                invocation.console.list("blobs", all.map(\.json), table: Blob.table(all))
                return .done
            }
            let swept = try await store.sweep(grace: grace)
            invocation.console.show([
                "blobs": .int(swept.blobs), "bytes": .int(swept.bytes), "remains": .int(swept.remains),
            ]) {
                invocation.console.print(
                    "\(Humane.count(swept.blobs)) blobs deleted, \(Humane.bytes(swept.bytes)); remains of interrupted puts: \(swept.remains)"
                )
            }
            return .done
        }
    }

    static let blobsVerify = Command(
        ["blobs", "verify"],
        summary: "Read blobs and check their hashes; exit 1 when one is damaged or missing",
        discussion: "The named blobs, or all.",
        arguments: [Argument("id", .any, .blobID, help: "the blobs' ids")],
        flags: [Setting.blobs.flag],
        examples: [Example("millrace blobs verify", "after a restored backup, say")]
    ) { invocation in
        let named = invocation.parsed.list("id").compactMap { BlobID($0) }
        return try await invocation.withBlobs { store in
            var checked = 0
            var findings: [JSONValue] = []
            var page = named
            var last: BlobID?
            repeat {
                if named.isEmpty {
                    page = try await store.list(after: last, page: 500).map(\.id)
                    last = page.last
                }
                for id in page {
                    do {
                        try await store.verify(id)
                    } catch let error as BlobError {
                        findings.append(["id": .string(id.description), "problem": .string(error.description)])
                        if invocation.console.format == .human { invocation.console.print(error.description, .red) }
                    }
                    checked += 1
                }
            } while named.isEmpty && !page.isEmpty
            invocation.console.show(["checked": .int(checked), "findings": .array(findings)]) {
                invocation.console.print(
                    "\(Humane.count(checked)) blobs checked, \(findings.count) damaged or missing")
            }
            return findings.isEmpty ? .done : .failed
        }
    }
}

/// A file's pieces, read on demand.
private struct Pieces: AsyncSequence, Sendable {
    let chunks: FileChunks

    struct Iterator: AsyncIteratorProtocol {
        let chunks: FileChunks

        func next() async throws -> [UInt8]? {
            let piece = try chunks.next()
            return piece.isEmpty ? nil : piece
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(chunks: chunks) }
}

extension Invocation {
    fileprivate var blobID: BlobID {
        get throws {
            guard let id = parsed.string("id").flatMap({ BlobID($0) }) else {
                throw Failure(.misused, "an id is needed")
            }
            return id
        }
    }

    /// Opens the store, lends it, closes it; its errors become failures with their exit codes.
    fileprivate func withBlobs(_ body: (any BlobStore) async throws -> ExitCode) async throws -> ExitCode {
        try await withSchema { _ in }
        let pool = Pool(try connectionOptions(), size: 4)
        let outcome: Result<ExitCode, any Error>
        do {
            outcome = .success(try await body(settings.blobStore(pool: pool)))
        } catch let error as BlobError {
            outcome = .failure(error.failure)
        } catch let error as PostgresError {
            outcome = .failure(DatabaseFailure(error))
        } catch let error as FileProblem {
            outcome = .failure(Failure(.misused, "the file \(error.complaint)"))
        } catch {
            outcome = .failure(error)
        }
        await pool.close()
        return try outcome.get()
    }
}

extension BlobError {
    fileprivate var failure: any CommandFailure {
        switch self {
        case .notFound:
            Failure(.notFound, description, hint: "see millrace blobs list, and MILLRACE_BLOBS in millrace config")
        case .tooLarge, .wrongSize, .misconfigured: Failure(.misused, description)
        case .damaged, .goneMeanwhile, .system, .away: Failure(description)
        case .database(let error): DatabaseFailure(error)
        }
    }
}

extension ValueKind {
    static let blobID = ValueKind.custom(expects: "a SHA-256 of 64 hexadecimal digits") { text in
        BlobID(text) == nil
            ? "takes a SHA-256 of 64 hexadecimal digits in lower case, not \(Secrets.quoted(text))" : nil
    }
}

extension Blob {
    var json: JSONValue {
        [
            "id": .string(id.description), "size": .int(size), "stored_at": JSONValue(storedAt),
            "references": .int(references),
        ]
    }

    static func table(_ rows: [Blob]) -> Table {
        var table = Table(
            [
                Table.Column("id"), Table.Column("size", .trailing), Table.Column("references", .trailing),
                Table.Column("stored"),
            ], whenEmpty: "no blobs")
        for row in rows {
            table.add([
                Table.Cell(row.id.description), Table.Cell(Humane.bytes(row.size)), Table.Cell("\(row.references)"),
                Table.Cell(row.storedAt.formatted(.iso8601)),
            ])
        }
        return table
    }
}
