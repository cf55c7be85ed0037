package import Blobs
import FoundationEssentials
package import MillraceJobs
package import Pages
package import Postgres
import Sandbox
package import Telemetry

/// Makes thumbnails and pictures without metadata, and keeps the files of rendered templates. It decodes nothing itself: programs in a sandbox do.
package struct MediaService: Sendable {
    package static let kind = "media.process"
    package static let queue = "media"

    /// A file that was made, before it is recorded.
    package struct File: Encodable, Sendable {
        package var kind: String
        package var blob: String
        package var size: Int
        package var mimeType: String
        package var width: Int?
        package var height: Int?

        private enum CodingKeys: String, CodingKey {
            case kind, blob, size, width, height
            case mimeType = "mime_type"
        }
    }

    /// What `media_process` stored.
    private struct Wish: Decodable {
        var thumbnail: PictureBounds?
        var strip: Bool?
        var format: PictureFormat?
    }

    let table: MediaStore
    let blobs: any BlobStore
    let programs: DocumentPrograms
    let files: FileCache
    let log: Log

    package init(pool: Pool, store: any BlobStore, programs: DocumentPrograms, folder: String, log: Log) {
        table = MediaStore(pool: pool)
        blobs = store
        self.programs = programs
        files = FileCache(directory: folder, most: 2)
        self.log = log
    }

    /// One run of a job of the kind media.process.
    package func run(_ args: [UInt8], _ context: Context) async throws -> Verdict {
        guard let id = Self.media(args) else { return .discard("the arguments name no media") }
        guard let taken = try await table.take(id, token: context.token) else { return .done }
        var (type, cpu) = (String?.none, Duration.zero)
        do {
            guard taken.what == "picture", let blob = taken.blob else {
                throw DocumentFailure(DocumentRefusal(.internal, "there is no picture to work on"))
            }
            let wish = try JSONDecoder().decode(Wish.self, from: Data(taken.wish))
            let sheet = try await files.sheet(blob, from: blobs)
            let probed = try await programs.probe(sheet.descriptor)
            cpu += probed.usage.cpu
            guard probed.value.kind.isImage else {
                throw DocumentFailure(DocumentRefusal(.unsupported, "the file is not a picture"))
            }
            type = probed.value.kind.mimeType
            var made: [File] = []
            let format = wish.format ?? .jpeg
            for (kind, bounds) in [("picture", nil), ("thumbnail", wish.thumbnail)]
            where kind == "picture" ? wish.strip == true : bounds != nil {
                let picture = try await programs.picture(sheet.descriptor, probed.value, within: bounds, as: format)
                cpu += picture.usage.cpu
                var file = try await stored(picture.value.bytes, kind, format.mimeType)
                (file.width, file.height) = (picture.value.width, picture.value.height)
                made.append(file)
            }
            return try await record(id, made, context, type: type, cpu: cpu)
        } catch {
            return try await end(id, error, context, type: type, cpu: cpu)
        }
    }

    /// The media that a job's arguments name, and nothing but them.
    package static func media(_ args: [UInt8]) -> String? {
        struct Args: Decodable { var media: UUID }
        return (try? JSONDecoder().decode(Args.self, from: Data(args)))?.media.uuidString.lowercased()
    }
}

extension MediaService {
    /// What a template is to become; nil: there is nothing left to do.
    package func order(_ id: String, _ context: Context) async throws -> [UInt8]? {
        try await table.take(id, token: context.token).flatMap { $0.what == "template" ? $0.wish : nil }
    }

    package func stored(_ bytes: [UInt8], _ kind: String, _ type: String) async throws -> File {
        File(kind: kind, blob: try await blobs.put(bytes).description, size: bytes.count, mimeType: type)
    }

    /// A text under its title, on pages.
    package func pdf(title: String, text: String) async throws -> (file: File, cpu: Duration) {
        let output = try await files.blank()
        let report = Report(title: title, facts: [], pages: [.init(heading: "", text: text)])
        let made = try await programs.report(report, into: output.descriptor)
        let (id, size) = try await blobs.put(files.pieces(of: output), limit: .max)
        return (
            File(kind: "pdf", blob: id.description, size: size, mimeType: "application/pdf"), made.usage.cpu
        )
    }

    /// Pages from the small HTML. Its pictures are decoded and packed again by programs of their own, so what was in their files beside the pixels
    /// is not in the PDF.
    package func pdf(title: String, html: String, pictures: [String: String]) async throws -> (
        file: File, cpu: Duration
    ) {
        var (design, bytes, cpu) = (PageDesign(title: title, html: html), [UInt8](), Duration.zero)
        for (name, hash) in pictures.sorted(by: { $0.key < $1.key }) {
            guard let id = BlobID(hash) else {
                throw DocumentFailure(DocumentRefusal(.internal, "the picture \(name) has no hash"))
            }
            let sheet = try await files.sheet(id, from: blobs)
            let probed = try await programs.probe(sheet.descriptor)
            guard [.png, .jpeg].contains(probed.value.kind) else {
                throw DocumentFailure(DocumentRefusal(.unsupported, "the picture \(name) is neither PNG nor JPEG"))
            }
            let isJPEG = probed.value.kind == .jpeg
            let made = try await programs.picture(
                sheet.descriptor, probed.value, within: Self.mostPicture, as: isJPEG ? .jpeg : .png)
            cpu += probed.usage.cpu + made.usage.cpu
            design.pictures.append(
                PageDesign.Picture(
                    name: name, isJPEG: isJPEG, width: made.value.width, height: made.value.height,
                    count: made.value.bytes.count))
            bytes += made.value.bytes
        }
        let output = try await files.blank()
        let made = try await programs.pages(design, bytes, into: output.descriptor)
        let (id, size) = try await blobs.put(files.pieces(of: output), limit: .max)
        return (
            File(kind: "pdf", blob: id.description, size: size, mimeType: "application/pdf"), cpu + made.usage.cpu
        )
    }

    /// Finer than any page is printed.
    private static let mostPicture = PictureBounds(width: 2400, height: 3400)

    /// Records the files, and ends the run with them and with what else its result says.
    package func record(
        _ id: String, _ made: [File], _ context: Context, type: String? = nil, cpu: Duration = .zero,
        result: [UInt8] = Array("{}".utf8)
    ) async throws -> Verdict {
        let json = Array(try JSONEncoder().encode(made))
        switch try await table.made(id, token: context.token, type: type, files: json, cpu: cpu, result: result) {
        case .made: return .recorded
        case .over: return .done
        case .quota:
            let refusal = DocumentRefusal(.quota, "the tenant may not store as much in this period")
            return try await fail(id, refusal, context, type: type, cpu: cpu)
        }
    }

    /// The job is dead, and the person reads why.
    package func fail(
        _ id: String, _ refusal: DocumentRefusal, _ context: Context, type: String? = nil, cpu: Duration = .zero
    ) async throws -> Verdict {
        _ = try await table.failed(id, token: context.token, type: type, refusal, cpu: cpu)
        log.info(
            "media cannot be made",
            [("media.id", id), ("reason", refusal.reason.rawValue), ("sentence", refusal.sentence)])
        return .discard("\(refusal.reason.rawValue): \(refusal.sentence)")
    }

    /// What would fail again ends at once; a program that crashed, or something of ours that was away, is tried again.
    package func end(
        _ id: String, _ error: any Error, _ context: Context, type: String? = nil, cpu: Duration = .zero
    ) async throws -> Verdict {
        if Task.isCancelled || error is CancellationError { throw CancellationError() }
        let isLast = context.attempt >= context.maxAttempts
        guard let failure = error as? DocumentFailure else {
            guard isLast else { throw error }
            return try await fail(id, DocumentRefusal(.internal, "\(Swift.type(of: error))"), context, cpu: cpu)
        }
        if failure.isCancelled { throw CancellationError() }
        // Once more after a crash; what is missing, or was killed from outside, says nothing about the picture.
        let worthIt =
            failure.mayGoWell && (failure.reason == .internal || failure.isKilled || context.attempt == 1)
        guard isLast || !worthIt else { return .retry(reason: failure.description) }
        let refusal = DocumentRefusal(failure.reason, failure.sentence)
        return try await fail(id, refusal, context, type: type, cpu: cpu + failure.usage.cpu)
    }
}
