/// A received request, and whether its signature is correct.
struct S3Request {
    let method: String
    let target: String
    private let path: String
    private let rawQuery: [(String, String)]
    private let fields: [(String, String)]

    init?(_ head: String) {
        let lines = head.split(separator: "\r\n")
        guard let words = lines.first?.split(separator: " "), words.count == 3 else { return nil }
        method = String(words[0])
        target = String(words[1])
        let halves = target.split(separator: "?", maxSplits: 1)
        path = String(halves[0])
        rawQuery = (halves.count > 1 ? halves[1] : "").split(separator: "&").map { part in
            let pair = part.split(separator: "=", maxSplits: 1)
            return (String(pair[0]), pair.count > 1 ? String(pair[1]) : "")
        }
        fields = lines.dropFirst().compactMap { line in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return (line[..<colon].lowercased(), String(line[line.index(after: colon)...].drop { $0 == " " }))
        }
    }

    subscript(name: String) -> String? { fields.first { $0.0 == name }?.1 }
    var length: Int { self["content-length"].flatMap { Int($0) } ?? 0 }
    var query: [String: String] {
        Dictionary(rawQuery.map { (Self.decoded($0.0), Self.decoded($0.1)) }, uniquingKeysWith: { $1 })
    }
    /// Behind the bucket's name.
    var key: String { Self.decoded(path.dropFirst().drop { $0 != "/" }.dropFirst().description) }

    static func decoded(_ text: String) -> String {
        var out: [UInt8] = []
        var left = Array(text.utf8)[...]
        while let byte = left.popFirst() {
            if byte == UInt8(ascii: "%"), left.count >= 2,
                let code = UInt8(String(decoding: left.prefix(2), as: UTF8.self), radix: 16)
            {
                out.append(code)
                left = left.dropFirst(2)
            } else {
                out.append(byte)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    func isSigned(body: [UInt8], key: String, access: String, region: String) -> Bool {
        var parts: [String: String] = [:]
        let isQuery = query["X-Amz-Signature"] != nil
        if isQuery {
            parts["Credential"] = query["X-Amz-Credential"]
            parts["SignedHeaders"] = query["X-Amz-SignedHeaders"]
            parts["Signature"] = query["X-Amz-Signature"]
        } else {
            guard let header = self["authorization"], header.hasPrefix("AWS4-HMAC-SHA256 ") else { return false }
            for part in header.dropFirst(17).split(separator: ",") {
                let pair = part.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
                if pair.count == 2 { parts[String(pair[0])] = String(pair[1]) }
            }
        }
        guard let stamp = isQuery ? query["X-Amz-Date"] : self["x-amz-date"], let names = parts["SignedHeaders"],
            names.split(separator: ";").contains("host"),
            parts["Credential"] == "\(access)/\(stamp.prefix(8))/\(region)/s3/aws4_request"
        else { return false }
        let payload = isQuery ? "UNSIGNED-PAYLOAD" : self["x-amz-content-sha256"] ?? ""
        if !isQuery, payload != Self.hex(Self.sha256(body)) { return false }
        var lines = ""
        for name in names.split(separator: ";") {
            guard let value = self[String(name)] else { return false }
            lines += "\(name):\(value)\n"
        }
        let signed = rawQuery.filter { $0.0 != "X-Amz-Signature" }.map { "\($0.0)=\($0.1)" }.sorted()
        let request = "\(method)\n\(path)\n\(signed.joined(separator: "&"))\n\(lines)\n\(names)\n\(payload)"
        let scope = "\(stamp.prefix(8))/\(region)/s3/aws4_request"
        let text = "AWS4-HMAC-SHA256\n\(stamp)\n\(scope)\n\(Self.hex(Self.sha256(Array(request.utf8))))"
        var derived = Array("AWS4\(key)".utf8)
        for step in [String(stamp.prefix(8)), region, "s3", "aws4_request", text] {
            derived = Self.hmac(derived, Array(step.utf8))
        }
        return Self.hex(derived) == parts["Signature"]
    }

    private static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        let hash = BodyHash()
        hash.add(bytes)
        return hash.end()
    }

    /// As defined in RFC 2104, from hashes alone.
    private static func hmac(_ key: [UInt8], _ text: [UInt8]) -> [UInt8] {
        var block = key.count > 64 ? sha256(key) : key
        block += [UInt8](repeating: 0, count: 64 - block.count)
        return sha256(block.map { $0 ^ 0x5c } + sha256(block.map { $0 ^ 0x36 } + text))
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
