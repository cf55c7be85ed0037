import Blobs
import JSON
import Listeners
import Threads

/// Uploads that go on where they ended: `PATCH` adds bytes at the place that `Upload-Offset` names, and `GET` or `HEAD` says how many have come.
///
/// This is what the clients of tus (1.0.0, the core protocol) do with an address that they are given. Each MiB is kept as soon as it has come, and
/// what has come of another when the connection ends.
extension BlobRoutes {
    /// What is kept at once, and held in memory until it is.
    static let part = 1 << 20
    /// Of tus, and of the IETF's draft.
    private static let types: Set<String> = ["application/offset+octet-stream", "application/partial-upload"]

    func came(_ request: Listeners.Request) async throws -> Listeners.Response {
        let wanted: BlobLinks.Upload
        switch uploadLink(request) {
        case .open(let upload): wanted = upload
        case .refused(let response): return response
        }
        let came = try await UploadLinkReservation.came(by: wanted.id, pool: store(for: request).pool)
        let answer: JSONValue = [
            "offset": .int(came ?? wanted.size), "size": .int(wanted.size), "complete": .bool(came == nil),
            "storage_url": .string("upload:\(wanted.id)"),
        ]
        var response = Listeners.Response.json(answer.compact + "\n", status: 200)
        response.headers += Self.headers(came, of: wanted)
        return response
    }

    func append(_ request: Listeners.Request) async throws -> Listeners.Response {
        let wanted: BlobLinks.Upload
        switch uploadLink(request) {
        case .open(let upload): wanted = upload
        case .refused(let response): return response
        }
        let type = (request.headers["content-type"] ?? "").prefix { $0 != ";" }.lowercased()
        guard Self.types.contains(type.filter { $0 != " " }) else {
            return Self.refusal(415, "unsupported", "a part of an upload is application/offset+octet-stream")
        }
        guard let place = request.headers["upload-offset"].flatMap(Self.number) else {
            return Self.refusal(
                400, "invalid", "Upload-Offset says where the part begins; it is missing, or not a number")
        }
        let length = request.headers["content-length"].flatMap(Self.number) ?? 0
        guard place <= wanted.size, length <= wanted.size - place else {
            return Self.refusal(400, "invalid", "this link takes exactly \(wanted.size) bytes")
        }
        let store = store(for: request)
        let hold: UploadLinkReservation?
        do {
            hold = try await UploadLinkReservation.resume(wanted.id, expiry: wanted.expiry, at: place, pool: store.pool)
        } catch let refused as UploadLinkReservation.Refused {
            // The answer to the last part was lost.
            if place == wanted.size, length == 0 { return Self.ended(nil, of: wanted) }
            return Self.refusal(refused)
        }
        guard let hold else {
            let came = try await UploadLinkReservation.came(by: wanted.id, pool: store.pool)
            var response = Self.refusal(
                409, "conflict", "the next byte of this upload is \(came ?? wanted.size), not \(place)")
            response.headers += Self.headers(came, of: wanted)
            return response
        }
        do {
            return try await take(request.body, at: place, of: wanted, hold, in: store)
        } catch {
            await hold.release()
            return try Self.refusal(error, of: wanted)
        }
    }

    private func take(
        _ body: RequestBody, at place: Int, of wanted: BlobLinks.Upload, _ hold: UploadLinkReservation,
        in store: any BlobStore
    ) async throws -> Listeners.Response {
        var (came, gathered) = (place, [UInt8]())
        gathered.reserveCapacity(Self.part + 65_536)
        do {
            for try await chunk in body {
                gathered += chunk
                guard came + gathered.count <= wanted.size else { throw BlobError.wrongSize(expected: wanted.size) }
                guard gathered.count >= Self.part else { continue }
                try await Self.keep(gathered, at: came, hold, in: store)
                came += gathered.count
                gathered.removeAll(keepingCapacity: true)
            }
        } catch let error as CancellationError {
            // The client is gone, or we are about to end: what has come stays.
            let (rest, place) = (gathered, came)
            try? await uncancelled { try await Self.keep(rest, at: place, hold, in: store) }
            throw error
        }
        try await Self.keep(gathered, at: came, hold, in: store)
        came += gathered.count
        guard came == wanted.size else {
            await hold.release()
            return Self.ended(came, of: wanted)
        }
        let parts = try await hold.parts()
        var id = parts.first
        if parts.count != 1 {
            let whole = BlobsInARow(parts: parts, store: store)
            id = try await store.put(hold.counted(whole, size: wanted.size), limit: wanted.size).id
        }
        if let id { try await hold.arrived(id) }
        return Self.ended(nil, of: wanted)
    }

    private static func keep(
        _ bytes: [UInt8], at place: Int, _ hold: UploadLinkReservation, in store: any BlobStore
    ) async throws {
        guard !bytes.isEmpty else { return }
        try await hold.add(try await store.put(bytes), at: place, size: bytes.count)
    }

    private static func number(_ text: String) -> Int? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
    }

    /// - Parameter came: nil: all of it.
    private static func ended(_ came: Int?, of wanted: BlobLinks.Upload) -> Listeners.Response {
        Response(status: 204, headers: headers(came, of: wanted))
    }

    private static func headers(_ came: Int?, of wanted: BlobLinks.Upload) -> [Header] {
        [
            Header("Upload-Offset", "\(came ?? wanted.size)"), Header("Upload-Length", "\(wanted.size)"),
            Header("Upload-Complete", came == nil ? "?1" : "?0"), Header("Tus-Resumable", "1.0.0"),
            Header("Cache-Control", "no-store"),
        ]
    }
}

/// Their contents, one behind the other.
private struct BlobsInARow: AsyncSequence, Sendable {
    let parts: [BlobID]
    let store: any BlobStore

    struct Iterator: AsyncIteratorProtocol {
        var parts: ArraySlice<BlobID>
        let store: any BlobStore

        mutating func next() async throws -> [UInt8]? {
            guard let id = parts.popFirst() else { return nil }
            return try await store.get(id)
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(parts: parts[...], store: store) }
}
