import Digests
package import FoundationEssentials
package import Postgres
import Synchronization
import Threads
package import Transfers

/// Blobs as objects, `<folder>/ab/cdef…`; parts under way are in `<folder>/tmp/`. A small blob is put in its place at once; a large one is
/// uploaded in parts as it comes, under a temporary name, and copied to its place when its hash is known.
///
/// As in a directory, a put registers in the database before its object goes to its place, and a sweep deletes object and row under the
/// row's lock.
package struct S3Store: BlobStore {
    package var pool: Pool
    private let bucket: S3Bucket
    private let folder: String

    /// The largest object that one copy can handle.
    private static let largest = 5 << 30

    package init(_ place: S3Place, _ options: S3Options, client: HTTPClient, pool: Pool) {
        self.pool = pool
        bucket = S3Bucket(place.bucket, options, client: client)
        folder = place.folder.isEmpty ? "" : place.folder + "/"
    }

    private func key(of id: BlobID) -> String {
        let name = id.description
        return "\(folder)\(name.prefix(2))/\(name.dropFirst(2))"
    }

    package func put<Chunks: AsyncSequence & Sendable>(
        _ chunks: Chunks, limit: Int
    ) async throws -> (id: BlobID, size: Int) where Chunks.Element == [UInt8] {
        let hasher = SHA256Digest()
        var parts: Parts?
        var waiting: [UInt8] = []
        var size = 0
        do {
            for try await chunk in chunks {
                size += chunk.count
                guard size <= min(limit, Self.largest) else {
                    throw BlobError.tooLarge(limit: min(limit, Self.largest))
                }
                hasher.update(chunk)
                waiting += chunk
                while waiting.count >= bucket.options.part * 2 {
                    if parts == nil { parts = try await begin() }
                    try await parts?.add(Array(waiting[..<bucket.options.part]), to: bucket)
                    waiting.removeFirst(bucket.options.part)
                }
            }
            try Task.checkCancellation()
            let id = BlobID(bytes: hasher.finish())
            if parts != nil {
                try await parts?.add(waiting, to: bucket)
                try await parts?.complete(in: bucket)
            }
            let total = size
            try await pool.withConnection { connection throws(PostgresError) in
                _ = try await connection.execute(
                    "select millrace.blob_touch($1, $2)", [.bytea(id.bytes), .int8(Int64(total))])
            }
            if let parts {
                try await copy(parts.key, to: key(of: id))
                await remove(parts)
            } else {
                try await store(waiting, as: key(of: id))
            }
            return (id, size)
        } catch {
            if let parts { await remove(parts) }
            throw error
        }
    }

    private func begin() async throws -> Parts {
        let key = "\(folder)tmp/\(UUID().uuidString.lowercased())"
        let response = try await bucket.send {
            bucket.request("POST", key, query: [SigV4.Field("uploads", "")])
        }
        guard response.status == 200, let upload = XMLText(response.text).first("UploadId") else {
            throw S3Bucket.complaint(response, "beginning a large blob")
        }
        return Parts(key: key, upload: upload)
    }

    private func store(_ bytes: [UInt8], as key: String) async throws {
        let response = try await bucket.send { bucket.request("PUT", key, body: bytes) }
        guard response.status == 200 else { throw S3Bucket.complaint(response, "putting a blob") }
    }

    private func copy(_ from: String, to key: String) async throws {
        let source = SigV4.Field("x-amz-copy-source", bucket.source(from))
        let response = try await bucket.send { bucket.request("PUT", key, headers: [source]) }
        // An error may follow the head of a success.
        guard response.status == 200, XMLText(response.text).first("ETag") != nil else {
            throw S3Bucket.complaint(response, "putting a large blob in its place")
        }
    }

    /// The sweep removes what cannot be removed now. A cancelled task must not skip this.
    private func remove(_ parts: Parts) async {
        let bucket = bucket
        await uncancelled {
            if !parts.isComplete {
                _ = try? await bucket.send {
                    bucket.request("DELETE", parts.key, query: [SigV4.Field("uploadId", parts.upload)])
                }
            } else {
                _ = try? await bucket.send { bucket.request("DELETE", parts.key) }
            }
        }
    }

    package func read(
        _ id: BlobID, range: Range<Int>?, _ take: @Sendable ([UInt8]) async throws -> Void
    ) async throws {
        if let range, range.isEmpty { return }
        var headers: [SigV4.Field] = []
        if let range { headers.append(SigV4.Field("range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")) }
        var request = bucket.request("GET", key(of: id), headers: headers)
        request.limits.total = .seconds(3600)
        request.limits.bodyBytes = Self.largest
        do {
            try await bucket.client.stream(request) { head, body in
                switch head.status {
                case 200, 206:
                    while let bytes = try await body.next() { try await take(bytes) }
                case 404: throw BlobError.notFound(id)
                case 416: return  // behind its end, or it is empty
                default: throw BlobError.away("reading a blob: S3 answered \(head.status)")
                }
            }
        } catch let error as TransferError {
            throw BlobError.away("reading a blob: \(error.sentence)")
        }
    }

    package func forget(_ id: BlobID, grace: Duration) async throws -> Bool {
        let (bucket, key) = (bucket, key(of: id))
        let failure = Mutex<BlobError?>(nil)
        do {
            return try await pool.withConnection { connection throws(PostgresError) in
                try await connection.transaction { connection throws(PostgresError) in
                    guard try await BlobReferences.forget(id, grace: grace, on: connection) else { return false }
                    do {
                        let response = try await bucket.send { bucket.request("DELETE", key) }
                        guard [200, 204, 404].contains(response.status) else {
                            throw S3Bucket.complaint(response, "deleting a blob")
                        }
                        return true
                    } catch {
                        // The row stays, and the next sweep finds it.
                        failure.withLock { $0 = error as? BlobError ?? .away("deleting a blob: it was broken off") }
                        throw .cancelled
                    }
                }
            }
        } catch {
            throw failure.withLock { $0 } ?? error
        }
    }

    package func clean(grace: Duration) async throws -> Int {
        let limit = Date().addingTimeInterval(-(grace / .seconds(1)))
        var gone = 0
        let uploads = try await list([SigV4.Field("uploads", ""), SigV4.Field("prefix", "\(folder)tmp/")])
        for (entry, upload) in zip(uploads.all("Upload").map(XMLText.init), uploads.all("UploadId")) {
            guard let key = entry.first("Key"), isOld(entry.first("Initiated"), limit) else { continue }
            let response = try await bucket.send {
                bucket.request("DELETE", key, query: [SigV4.Field("uploadId", upload)])
            }
            if response.status < 300 { gone += 1 }
        }
        let objects = try await list([SigV4.Field("list-type", "2"), SigV4.Field("prefix", "\(folder)tmp/")])
        for entry in objects.all("Contents").map(XMLText.init) {
            guard let key = entry.first("Key"), isOld(entry.first("LastModified"), limit) else { continue }
            let response = try await bucket.send { bucket.request("DELETE", key) }
            if response.status < 300 { gone += 1 }
        }
        return gone
    }

    private func list(_ query: [SigV4.Field]) async throws -> XMLText {
        let response = try await bucket.send { bucket.request("GET", "", query: query) }
        guard response.status == 200 else { throw S3Bucket.complaint(response, "looking for remains of blobs") }
        return XMLText(response.text)
    }

    private func isOld(_ text: String?, _ limit: Date) -> Bool {
        guard let text, let date = try? Date(String(text.prefix(19)) + "Z", strategy: .iso8601) else { return false }
        return date < limit
    }

    /// A signed address by which its bearer reads the blob from S3 itself, until `span` has passed.
    package func downloadAddress(_ id: BlobID, for span: Duration, at date: Date = Date()) -> String {
        bucket.address("GET", key(of: id), headers: [], for: span, at: date)
    }

    /// A signed address by which its bearer puts one object of exactly this size and type.
    package func uploadAddress(
        _ name: String, size: Int, type: String, for span: Duration, at date: Date = Date()
    ) -> String {
        bucket.address(
            "PUT", "\(folder)tmp/\(name)",
            headers: [SigV4.Field("content-length", "\(size)"), SigV4.Field("content-type", type)], for: span, at: date)
    }
}

/// An object that goes up in parts.
private struct Parts: Sendable {
    let key: String
    let upload: String
    private var tags: [String] = []
    private(set) var isComplete = false

    init(key: String, upload: String) {
        self.key = key
        self.upload = upload
    }

    mutating func add(_ bytes: [UInt8], to bucket: S3Bucket) async throws {
        let query = [SigV4.Field("partNumber", "\(tags.count + 1)"), SigV4.Field("uploadId", upload)]
        let response = try await bucket.send { bucket.request("PUT", key, query: query, body: bytes) }
        guard response.status == 200, let tag = response.headers["ETag"] else {
            throw S3Bucket.complaint(response, "putting a part of a blob")
        }
        tags.append(tag)
    }

    mutating func complete(in bucket: S3Bucket) async throws {
        let list = tags.enumerated().map { "<Part><PartNumber>\($0 + 1)</PartNumber><ETag>\($1)</ETag></Part>" }
        let body = Array("<CompleteMultipartUpload>\(list.joined())</CompleteMultipartUpload>".utf8)
        let response = try await bucket.send {
            bucket.request("POST", key, query: [SigV4.Field("uploadId", upload)], body: body)
        }
        guard response.status == 200, XMLText(response.text).first("ETag") != nil else {
            throw S3Bucket.complaint(response, "ending a large blob")
        }
        isComplete = true
    }
}
