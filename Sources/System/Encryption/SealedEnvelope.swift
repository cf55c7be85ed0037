import FoundationEssentials

/// The stored form of encrypted arguments: `{"$millrace": "sealed", "v": 1, "key": "…", "data": "…"}`. The database reserves the first
/// name, so that no plain arguments look like this.
package struct SealedEnvelope: Sendable {
    package let key: String
    /// Nonce, ciphertext and tag.
    let data: [UInt8]

    init(key: String, data: [UInt8]) {
        self.key = key
        self.data = data
    }

    /// nil: these are plain arguments.
    package init?(_ args: [UInt8]) throws(SealError) {
        // Most arguments are plain, so they are not parsed twice.
        guard Self.mentions(args), let top = try? JSONDecoder().decode(Top.self, from: Data(args)), top.seal == "sealed"
        else { return nil }
        guard let fields = try? JSONDecoder().decode(Fields.self, from: Data(args)), fields.v == 1,
            Key.isID(fields.key), let data = Data(base64Encoded: fields.data)
        else { throw .malformed }
        key = fields.key
        self.data = Array(data)
    }

    var json: [UInt8] {
        // An id and base64 hold nothing that JSON would escape.
        Array(
            #"{"$millrace": "sealed", "v": 1, "key": "\#(key)", "data": "\#(Data(data).base64EncodedString())"}"#.utf8)
    }

    private static let mark = Array(#""$millrace""#.utf8)

    private static func mentions(_ args: [UInt8]) -> Bool {
        guard args.count > mark.count, args.first == UInt8(ascii: "{") else { return false }
        return args.withUnsafeBytes { args in
            mark.withUnsafeBytes { mark in
                var start = 0
                while start + mark.count <= args.count {
                    guard let quote = args[start...].firstIndex(of: UInt8(ascii: "$")) else { return false }
                    // the mark begins a byte before its sign
                    if quote > 0, args[(quote - 1)...].starts(with: mark) { return true }
                    start = quote + 1
                }
                return false
            }
        }
    }

    private struct Top: Decodable {
        let seal: String?

        enum CodingKeys: String, CodingKey { case seal = "$millrace" }
    }

    private struct Fields: Decodable {
        let v: Int
        let key: String
        let data: String
    }
}
