import BlobKit
import Blobs
import CommandKit
import FoundationEssentials
import Pages
import Postgres

extension Command {
    /// How a document is read, and what is made of it: of one document, and of a tenant's.
    static let documentOptions: [CommandFlag] = [
        .repeated(
            "lang", "LANGUAGE", environment: .none,
            help: "A language it is written in, such as deu; auto, the default: found page by page."),
        .single(
            "policy", "POLICY", .choice(["partial", "strict"]), environment: .none,
            help: "Whether an unreadable page fails the document; partial if not given."),
        .single("mode", "MODE", .choice(["skip", "force", "redo"]), environment: .none, help: modeHelp),
        .single(
            "dpi", "N", .integer(72...600), environment: .none,
            help: "The highest resolution of drawn pages; 300 if not given."),
        .repeated(
            "output", "KIND", .choice(["text", "json", "pdf", "preview", "report", "markdown", "hocr", "alto"]),
            environment: .none,
            help: "Which outputs to make; all but markdown, hocr and alto if not given."),
        .single(
            "split", "HOW", .choice(["off", "separators"]), environment: .none,
            help: "separators: a page with a separating code ends a document; off if not given."),
        .single(
            "format", "FORMAT", .choice(["pdf", "pdfa-2b"]), environment: .none,
            help: "What the searchable copy is: a PDF, which is the default, or one for archives."),
        .toggle("level", environment: .none, help: "Level pages that are askew, in the copy."),
        .toggle("clean", environment: .none, help: "Make the paper of scans white in the copy, without specks."),
        .single(
            "pictures", "HOW", .choice(["keep", "lossless", "small"]), environment: .none,
            help: "Make the copy's pictures smaller: without loss, or as JPEG of at most 300 dpi."),
    ]

    static let modeHelp = """
        skip: a page's own text counts; force: every page is read in its picture; redo: so are pages that were read \
        before, but for their visible text.
        """

    static let documentsSubmit = Command(
        ["documents", "submit"],
        summary: "Submit a document to be read",
        discussion: """
            Stores the content of a file, or of standard input for -, as a blob; a worker reads it page by page: \
            \(FileFormat.names). Make a PDF of an e-mail or an office file first. \
            Prints the document's id. A worker fetches an https:// address, and also a file: address of a file that is \
            not on this machine, from the directories of the worker's MILLRACE_DOCUMENT_DIRS. With --watch the \
            progress is shown until the document has ended: exit 0 when it was read, 8 when it was not, 7 when \
            --timeout is over.
            """,
        arguments: [Argument("file", .one, .path, help: "the file, an address, or - for standard input")],
        flags: [
            .single("title", "TEXT", environment: .none, help: "Its title; the file's name if not given."),
            .single("lesson", "ID", environment: .none, help: "The lesson it belongs to."),
            .single("tenant", "TENANT", environment: .none, help: "The tenant it belongs to."),
            .single("owner", "PERSON", environment: .none, help: "The person it belongs to."),
        ] + documentOptions + [
            .single("password-file", "FILE", .path, environment: .none, help: "A file that holds its password."),
            .single("id", "UUID", .uuid, environment: .none, help: "Its id; a new one if not given."),
            .toggle("watch", environment: .none, help: "Follow it to its end."), Setting.blobs.flag,
        ],
        examples: [
            Example("millrace documents submit scan.pdf --watch", "and see it being read"),
            Example("millrace documents submit letter.png --lang deu --lang eng", "in two languages"),
            Example("millrace documents submit stack.pdf --split separators", "a document for each letter of a stack"),
        ]
    ) { invocation in
        let name = invocation.parsed.string("file") ?? "-"
        let isAddress = ["https://", "file:/", "blob:"].contains { name.hasPrefix($0) }
        let source = try await invocation.source(name, isAddress: isAddress)
        let request = try invocation.registration(source, title: isAddress || name == "-" ? nil : name)
        let id = try await invocation.withSchema { connection in
            try await DocumentAdmin.register(Array(request.compact.utf8), on: connection)
        }
        guard invocation.parsed.isOn("watch") else {
            invocation.console.show(["id": .string(id)]) { invocation.console.print(id) }
            return .done
        }
        invocation.console.detail("document \(id)")
        return try await invocation.watch(document: id)
    }
}

extension Invocation {
    /// A file that the person at the command line can read becomes a blob: a worker reads only files that its operator permits.
    fileprivate func source(_ name: String, isAddress: Bool) async throws -> String {
        guard isAddress else { return "blob:\(try await stored(name))" }
        guard name.hasPrefix("file:/") else { return name }
        let path = String(name.dropFirst("file:".count))
        guard (try? surroundings.chunks(path)) != nil else { return name }
        return "blob:\(try await stored(path))"
    }

    /// The blob's id.
    /// - Parameter most: what may have no more bytes than a document, for the refusal.
    func stored(_ name: String, most what: String = "a document") async throws -> String {
        let chunks: FileChunks
        do throws(FileProblem) {
            chunks = try surroundings.chunks(name)
        } catch {
            throw Failure(.misused, "\(Secrets.quoted(name)): \(error.complaint)")
        }
        // What a worker would refuse is not stored first, whether it ends or not.
        let limit = workshop.quotas.bytes
        return try await withBlobStore { store in
            do {
                return try await store.put(FilePieces(chunks: chunks), limit: limit).id.description
            } catch BlobError.tooLarge {
                throw Failure(
                    .misused, "\(Secrets.quoted(name)) has more than \(limit) bytes, the most of \(what)",
                    hint: "MILLRACE_DOCUMENT_BYTES allows more, here and for the workers")
            }
        }
    }

    fileprivate func registration(_ source: String, title: String?) throws -> JSONValue {
        var members: [JSONValue.Member] = [.init(key: "storage_url", value: .string(source))]
        func add(_ name: String, _ value: JSONValue?) {
            if let value { members.append(.init(key: name, value: value)) }
        }
        let file = title.map { $0.split(separator: "/").last.map(String.init) ?? $0 }
        add("title", (parsed.string("title") ?? file.map { DisplayWidth.harmless($0) }).map(JSONValue.string))
        for (flag, name) in [("lesson", "lesson_id"), ("tenant", "tenant"), ("owner", "actor"), ("id", "id")] {
            add(name, parsed.string(flag).map(JSONValue.string))
        }
        if let path = parsed.string("password-file") { add("password", .string(try password(at: path))) }
        add("options", documentOptions)
        return .object(members)
    }

    /// The options that are given.
    var documentOptions: JSONValue {
        var options: [JSONValue.Member] = []
        for name in ["policy", "mode", "split", "format", "pictures"] {
            if let value = parsed.string(name) { options.append(.init(key: name, value: .string(value))) }
        }
        if !parsed.list("lang").isEmpty {
            options.append(.init(key: "languages", value: JSONValue(parsed.list("lang"))))
        }
        if !parsed.list("output").isEmpty {
            options.append(.init(key: "outputs", value: JSONValue(parsed.list("output"))))
        }
        for name in ["level", "clean"] where parsed.isOn(name) {
            options.append(.init(key: name, value: .bool(true)))
        }
        if let dpi = parsed.integer("dpi") { options.append(.init(key: "dpi", value: .int(dpi))) }
        return .object(options)
    }

    /// Its first line.
    private func password(at path: String) throws -> String {
        do throws(FileProblem) {
            let bytes = try surroundings.read(path, 4096).prefix { $0 != 10 && $0 != 13 }
            guard let text = String(validating: bytes, as: UTF8.self), !text.isEmpty else {
                throw FileProblem(complaint: "holds no password")
            }
            return text
        } catch {
            throw Failure(.misused, "\(Secrets.quoted(path)): \(error.complaint)")
        }
    }

    /// Opens the blobs, lends them, closes them.
    func withBlobStore<Value: Sendable>(_ body: (any BlobStore) async throws -> Value) async throws -> Value {
        try await withSchema { _ in }
        let pool = Pool(try connectionOptions(), size: 2)
        let outcome: Result<Value, any Error>
        do {
            outcome = .success(try await body(settings.blobStore(pool: pool)))
        } catch let error as BlobError {
            if case .database(let error) = error {
                outcome = .failure(DatabaseFailure(error))
            } else {
                outcome = .failure(Failure(error.description))
            }
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
