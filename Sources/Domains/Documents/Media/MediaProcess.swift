import BlobKit
import Blobs
import CommandKit
import Glibc
import Postgres

extension Command {
    static let mediaProcess = Command(
        ["media", "process"],
        summary: "Make a thumbnail of a picture, or a copy without its metadata",
        discussion: """
            Stores the content of a file, or of standard input for -, as a blob; what begins with blob: or upload: is \
            stored already. Prints the id of the media; a worker makes them. With --wait it waits for the end, and \
            prints the files: exit 0 when they were made, 8 when they were not, 7 when --timeout is over.
            """,
        arguments: [Argument("picture", .one, .path, help: "the file, blob:…, upload:…, or - for standard input")],
        flags: [
            .single(
                "thumbnail", "SIZE", .pictureSize, environment: .none,
                help: "A small picture within this size: 320x240, 320x for the width alone, x240 for the height."),
            .toggle("strip", environment: .none, help: "The whole picture, without its metadata."),
            .single(
                "format", "FORMAT", .choice(["jpeg", "png"]), environment: .none, help: "jpeg, or png without loss."),
            .single("tenant", "TENANT", environment: .none, help: "The tenant they belong to."),
            .single("as", "PERSON", environment: .none, help: "The person they belong to."),
            .single("id", "UUID", .uuid, environment: .none, help: "Their id; a new one if not given."),
            .toggle("wait", environment: .none, help: "Wait until they are made."),
            .single(
                "out", "DIR", .path, environment: .none, help: "Wait, and write the files there, as thumbnail.jpg."),
            Setting.blobs.flag,
        ],
        examples: [
            Example("millrace media process me.heic --thumbnail 320x320 --strip --as anna", "the id of both"),
            Example("millrace media process me.heic --thumbnail 320x --out small", "small/thumbnail.jpg"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let options = try invocation.mediaOptions()
        let name = parsed.string("picture") ?? "-"
        let isStored = ["blob:", "upload:"].contains { name.hasPrefix($0) }
        let source = isStored ? name : "blob:\(try await invocation.stored(name, most: "a picture"))"
        let id = try await invocation.withSchema { connection in
            try await MediaAdmin.process(
                source, options: Array(options.compact.utf8), tenant: parsed.string("tenant"),
                id: parsed.string("id"), person: parsed.string("as"), on: connection)
        }
        guard parsed.isOn("wait") || parsed.string("out") != nil else {
            invocation.console.show(["id": .string(id)]) { invocation.console.print(id) }
            return .done
        }
        invocation.console.detail("media \(id)")
        return try await invocation.await(media: id)
    }
}

extension Invocation {
    fileprivate func mediaOptions() throws(Failure) -> JSONValue {
        var options: [JSONValue.Member] = []
        if let size = parsed.string("thumbnail").flatMap({ PictureSides($0) }) {
            let sides = [("width", size.width), ("height", size.height)]
            options.append(
                .init(
                    key: "thumbnail",
                    value: .object(sides.compactMap { name, side in side.map { .init(key: name, value: .int($0)) } })))
        }
        if parsed.isOn("strip") { options.append(.init(key: "strip", value: true)) }
        guard !options.isEmpty else {
            throw Failure(.misused, "nothing is to be made", hint: "give --thumbnail 320x320, --strip, or both")
        }
        if let format = parsed.string("format") { options.append(.init(key: "format", value: .string(format))) }
        return .object(options)
    }

    /// Until they have ended: they are looked at five times a second.
    fileprivate func await(media id: String) async throws -> ExitCode {
        let deadline = deadline
        let region = console.live()
        let row = try await withSchema { connection in
            while true {
                let row = try await media(id, on: connection)
                if row["status"]?.text != "waiting" {
                    region.finish()
                    return row
                }
                if console.format == .human, console.verbosity >= .normal { region.update(["waiting for a worker"]) }
                if let deadline, deadline <= .now {
                    region.finish()
                    throw Failure(.timedOut, "media \(id) are not made yet", hint: "millrace media show \(id)")
                }
                try await Task.sleep(for: .milliseconds(200))
            }
        }
        let isDone = row["status"]?.text == "done"
        console.show(row) { printMedia(row) }
        if isDone, let directory = parsed.string("out") { try await write(row["files"]?.items ?? [], to: directory) }
        return isDone ? .done : .jobDied
    }

    private func write(_ files: [JSONValue], to directory: String) async throws {
        guard mkdir(directory, 0o755) == 0 || errno == EEXIST else {
            throw Failure("\(Secrets.quoted(directory)) cannot be made: \(Descriptor.sentence(errno))")
        }
        try await withBlobStore { store in
            for file in files {
                guard let blob = file["storage_url"]?.text.flatMap({ BlobID($0.dropFirst("blob:".count)) }) else {
                    continue
                }
                let ending = file["mime_type"]?.text == "image/png" ? "png" : "jpg"
                let path = "\(directory)/\(file["kind"]?.text ?? "picture").\(ending)"
                try await NewFile.write(at: path) { descriptor in
                    try await store.read(blob, range: nil) { bytes in
                        if let number = Descriptor.write(bytes, to: descriptor) {
                            throw Failure("\(Secrets.quoted(path)) cannot be written: \(Descriptor.sentence(number))")
                        }
                    }
                }
                console.note("\(path) is written")
            }
        }
    }
}

/// `320x240`, `320x` or `x240`.
private struct PictureSides {
    let width: Int?
    let height: Int?

    /// nil: neither side, no number, or more than SQL takes.
    init?(_ text: String) {
        let parts = text.split(separator: "x", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.contains(where: { !$0.isEmpty }) else { return nil }
        func side(_ part: Substring) -> Int? { part.allSatisfy(\.isNumber) ? Int(part) : nil }
        (width, height) = (side(parts[0]), side(parts[1]))
        for (part, side) in zip(parts, [width, height]) where !part.isEmpty {
            guard let side, (1...4096).contains(side) else { return nil }
        }
    }
}

extension ValueKind {
    fileprivate static let pictureSize = ValueKind.custom(expects: "a size such as 320x240, 320x or x240") { text in
        PictureSides(text) == nil
            ? "takes a size such as 320x240, 320x or x240, with sides of 1 to 4096 pixels, not \(Secrets.quoted(text))"
            : nil
    }
}
