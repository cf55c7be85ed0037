package import Blobs
import FoundationEssentials
import JSON
package import Listeners
import Postgres
package import Telemetry

/// Puts and gets by signed links.
package struct BlobRoutes: Sendable {
    package let links: BlobLinks
    package let store: any BlobStore
    /// The most bytes of a document: no link takes more.
    package let largest: Int
    /// Who puts or gets: each address has a share of the store's connections.
    let addresses: ClientAddress
    package let log: Log

    package init(links: BlobLinks, store: any BlobStore, largest: Int, addresses: ClientAddress, log: Log) {
        self.links = links
        self.store = store
        self.largest = largest
        self.addresses = addresses
        self.log = log
    }

    package var all: [Route] {
        [
            Route(.put, "/v1/uploads/{token}", access: .verified, limit: largest) { request in
                try await unlessCrowded { try await put(request) }
            },
            Route(.get, "/v1/uploads/{token}", access: .verified) { request in
                try await unlessCrowded { try await came(request) }
            },
            Route(.patch, "/v1/uploads/{token}", access: .verified, limit: largest) { request in
                try await unlessCrowded { try await append(request) }
            },
            Route(.get, "/v1/blobs/{token}", access: .verified) { request in
                try await unlessCrowded { try await get(request) }
            },
            Route(.get, "/v1/exports/{token}", access: .verified) { request in
                try await unlessCrowded { try await export(request) }
            },
        ]
    }

    private func unlessCrowded(_ body: () async throws -> Listeners.Response) async throws -> Listeners.Response {
        do {
            return try await body()
        } catch is PoolShareTaken {
            throw ErrorAnswer(
                .throttled, "too many files of this address at once", hint: "try again in a moment",
                headers: [Header("Retry-After", "1")])
        }
    }

    /// SQL makes links with the same key, and none for more than a document may have.
    package func tellDatabase() async throws {
        guard let key = links.newestKey else { return }
        try await store.pool.withConnection { connection throws(PostgresError) in
            _ = try await connection.query(
                "select millrace.link_key_set($1, $2, $3, true)",
                [.bytea(key), .text(links.publicURL), .int8(Int64(largest))]
            ) { _ throws(PostgresError) in true }
        }
    }

    func store(for request: Listeners.Request) -> any BlobStore {
        var store = store
        store.pool = store.pool.share(of: addresses.of(request))
        return store
    }

    enum OpenedLink {
        case open(BlobLinks.Upload)
        case refused(Listeners.Response)
    }

    func uploadLink(_ request: Listeners.Request) -> OpenedLink {
        switch links.openUpload(request.parameter("token"), at: Self.now) {
        case .open(let upload) where upload.size > largest:
            .refused(Self.refusal(413, "too_large", "a document has at most \(largest) bytes"))
        case .open(let upload): .open(upload)
        case .expired: .refused(Self.refusal(410, "not_found", "this link has expired; ask for a new one"))
        case .foreign: .refused(Self.refusal(404, "not_found", "this link is not one of ours"))
        }
    }

    private func put(_ request: Listeners.Request) async throws -> Listeners.Response {
        let wanted: BlobLinks.Upload
        switch uploadLink(request) {
        case .open(let upload): wanted = upload
        case .refused(let response): return response
        }
        let type = (request.headers["content-type"] ?? "").prefix { $0 != ";" }.lowercased()
        guard type.filter({ $0 != " " }) == wanted.type else {
            return Self.refusal(415, "unsupported", "this link takes \(wanted.type)")
        }
        if let length = request.headers["content-length"], length != "\(wanted.size)" {
            return Self.refusal(400, "invalid", "this link takes exactly \(wanted.size) bytes")
        }
        let store = store(for: request)
        let hold: UploadLinkReservation
        do {
            hold = try await UploadLinkReservation.reserve(wanted.id, expiry: wanted.expiry, pool: store.pool)
        } catch let refused as UploadLinkReservation.Refused {
            return Self.refusal(refused)
        }
        let id: BlobID
        do {
            id = try await store.put(hold.counted(request.body, size: wanted.size), limit: wanted.size).id
            try await hold.arrived(id)
        } catch {
            await hold.release()
            return try Self.refusal(error, of: wanted)
        }
        let answer: JSONValue = [
            "id": .string(id.description), "size": .int(wanted.size), "storage_url": .string("upload:\(wanted.id)"),
        ]
        return .json(answer.compact + "\n", status: 201)
    }

    private func get(_ request: Listeners.Request) async throws -> Listeners.Response {
        let wanted: BlobLinks.Download
        switch links.openDownload(request.parameter("token"), at: Self.now) {
        case .open(let download): wanted = download
        case .expired: return Self.refusal(410, "not_found", "this link has expired; ask for a new one")
        case .foreign: return Self.refusal(404, "not_found", "this link is not one of ours")
        }
        let store = store(for: request)
        guard try await holds(wanted), let blob = try await store.head(wanted.id) else {
            return Self.refusal(404, "not_found", "this content is gone")
        }
        var headers = [
            Header("Content-Type", wanted.type), Header("ETag", "\"\(wanted.id)\""), Header("Accept-Ranges", "bytes"),
            Header("Cache-Control", wanted.owner == nil ? "private, max-age=300" : "private, no-cache"),
        ]
        if let name = wanted.name {
            headers.append(
                Header("Content-Disposition", "attachment; filename*=UTF-8''\(SigV4.encoded(name))"))
        }
        var range: Range<Int>?
        if let asked = request.headers["range"], request.headers["if-range"] == nil {
            switch Self.range(asked, of: blob.size) {
            case .part(let part): range = part
            case .outside:
                return Response(status: 416, headers: [Header("Content-Range", "bytes */\(blob.size)")])
            case .ignored: break
            }
        }
        if let range {
            headers.append(
                Header("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(blob.size)"))
        }
        let part = range
        return Response(
            status: part == nil ? 200 : 206, headers: headers,
            body: .stream { writer in
                try await store.read(wanted.id, range: part) { try await writer.write($0) }
            })
    }

    /// A link ends with what it is of: a document, media, or a message that its reader sees.
    private func holds(_ wanted: BlobLinks.Download) async throws -> Bool {
        guard let owner = wanted.owner else { return true }
        return try await store.pool.withConnection { connection throws(PostgresError) in
            guard
                try await connection.truth(
                    "select millrace.blob_link_holds($1, $2)", [.bytea(wanted.id.bytes), .text(owner)])
            else { return false }
            guard !wanted.reader.isEmpty else { return true }
            return try await connection.truth(
                "select millrace.chat_link_holds($1, $2)", [.text(owner), .bytea(wanted.reader)])
        }
    }

    package enum Asked: Equatable {
        case part(Range<Int>)
        case outside
        /// Another unit, several parts, or malformed: the answer is the whole blob.
        case ignored
    }

    package static func range(_ text: String, of size: Int) -> Asked {
        guard text.hasPrefix("bytes="), !text.contains(",") else { return .ignored }
        let parts = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }) else {
            return .ignored
        }
        switch (Int(parts[0]), Int(parts[1])) {
        case (let first?, let last?) where first <= last:
            return first < size ? .part(first..<min(last, size - 1) + 1) : .outside
        case (let first?, nil) where parts[1].isEmpty: return first < size ? .part(first..<size) : .outside
        case (nil, let count?) where parts[0].isEmpty:
            return count > 0 && size > 0 ? .part(max(0, size - count)..<size) : .outside
        default: return .ignored
        }
    }

    static var now: Int { Int(Date().timeIntervalSince1970) }

    /// The answer to an upload that failed; what is no fault of the client is thrown on.
    static func refusal(_ error: any Error, of wanted: BlobLinks.Upload) throws -> Listeners.Response {
        switch error {
        case let refused as UploadLinkReservation.Refused: return refusal(refused)
        case BlobError.wrongSize: return refusal(400, "invalid", "this link takes exactly \(wanted.size) bytes")
        default: throw error
        }
    }

    static func refusal(_ refused: UploadLinkReservation.Refused) -> Listeners.Response {
        switch refused {
        case .used: refusal(409, "conflict", "this link was used already")
        case .busy: refusal(409, "conflict", "an upload through this link is under way; wait until it has come")
        case .tooManyParts:
            refusal(
                413, "too_large", "an upload comes in 10000 parts at most; ask for a new link and send larger parts")
        }
    }

    static func refusal(_ status: Int, _ error: String, _ message: String) -> Listeners.Response {
        let body: JSONValue = ["error": .string(error), "message": .string(message)]
        return .json(body.compact + "\n", status: status)
    }
}
