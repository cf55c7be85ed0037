import Compression
import Digests
import Encodings
import Listeners

/// A JSON document that many ask for and that changes rarely: sent packed to those who read that, and not at all to those who have it.
struct StoredDocument: Sendable {
    private let plain: [UInt8]
    /// nil: there was no memory for it.
    private let packed: [UInt8]?
    private let digest: String

    init(_ text: String) {
        plain = Array(text.utf8)
        packed = Gzip.compressed(plain)
        digest = Hexadecimal.text(SHA256Digest.of(plain).prefix(12))
    }

    func response(to request: Request) -> Response {
        let isPacked = packed != nil && Self.reads("gzip", request.headers.all("Accept-Encoding"))
        let tag = "\"\(digest)\(isPacked ? "-gzip" : "")\""
        // Kept by clients, and asked for again each time.
        let headers = [Header("ETag", tag), Header("Cache-Control", "no-cache"), Header("Vary", "Accept-Encoding")]
        let known = Self.items(request.headers.all("If-None-Match"))
        if known.contains(where: { $0 == "*" || $0 == tag || $0 == "W/\(tag)" }) {
            return Response(status: 304, headers: headers)
        }
        let type = [Header("Content-Type", "application/json")]
        guard isPacked, let packed else { return Response(headers: type + headers, body: .bytes(plain)) }
        return Response(headers: type + headers + [Header("Content-Encoding", "gzip")], body: .bytes(packed))
    }

    /// What stands between commas, without spaces.
    private static func items(_ values: [String]) -> [String] {
        values.joined(separator: ",").split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
    }

    /// Whether a client reads this encoding (RFC 9110, 12.5.3).
    private static func reads(_ encoding: String, _ accepted: [String]) -> Bool {
        for item in items(accepted) {
            let parts = item.lowercased().split(separator: ";")
            guard let name = parts.first, name == encoding || name == "*" else { continue }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
            return weight > 0
        }
        return false
    }
}
