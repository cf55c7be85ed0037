import Digests
import Encodings
package import FoundationEssentials
import Signatures

/// Signs requests to S3, and addresses that clients without a key can use (AWS Signature Version 4).
package struct SigV4: Sendable, CustomStringConvertible, CustomReflectable {
    package struct Field: Sendable, Equatable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package static let unsigned = "UNSIGNED-PAYLOAD"
    private static let algorithm = "AWS4-HMAC-SHA256"

    private let accessKey: String
    private let secretKey: String
    private let token: String?
    private let region: String

    package init(accessKey: String, secretKey: String, token: String? = nil, region: String) {
        self.accessKey = accessKey
        self.secretKey = secretKey
        self.token = token
        self.region = region
    }

    /// It holds a secret.
    package var description: String { "an S3 key" }
    package var customMirror: Mirror { Mirror(self, children: []) }

    /// The headers to send in addition to the given ones, which are signed, too; `host` is in neither.
    ///
    /// - Parameters:
    ///   - path: as it is sent, percent-encoded.
    ///   - payload: the SHA-256 of the body in hexadecimal digits.
    package func sign(
        _ method: String, host: String, path: String, query: [Field] = [], headers: [Field] = [], payload: String,
        at date: Date
    ) -> [Field] {
        let stamp = Self.stamp(date)
        var added = [Field("x-amz-content-sha256", payload), Field("x-amz-date", stamp)]
        if let token { added.append(Field("x-amz-security-token", token)) }
        let signed = headers + added + [Field("host", host)]
        let signature = signature(
            method, path: path, query: query, headers: signed, payload: payload, stamp: stamp)
        added.append(
            Field(
                "Authorization",
                "\(Self.algorithm) Credential=\(accessKey)/\(scope(stamp)),SignedHeaders=\(Self.names(signed)),Signature=\(signature)"
            ))
        return added
    }

    /// The query of a signed address that is valid for `span`. The client must send the given headers, too.
    package func presign(
        _ method: String, host: String, path: String, headers: [Field] = [], for span: Duration, at date: Date
    ) -> String {
        let stamp = Self.stamp(date)
        let signed = headers + [Field("host", host)]
        var query = [
            Field("X-Amz-Algorithm", Self.algorithm), Field("X-Amz-Credential", "\(accessKey)/\(scope(stamp))"),
            Field("X-Amz-Date", stamp), Field("X-Amz-Expires", "\(span.components.seconds)"),
            Field("X-Amz-SignedHeaders", Self.names(signed)),
        ]
        if let token { query.append(Field("X-Amz-Security-Token", token)) }
        let signature = signature(
            method, path: path, query: query, headers: signed, payload: Self.unsigned, stamp: stamp)
        return Self.text(query) + "&X-Amz-Signature=\(signature)"
    }

    private func scope(_ stamp: String) -> String { "\(stamp.prefix(8))/\(region)/s3/aws4_request" }

    private func signature(
        _ method: String, path: String, query: [Field], headers: [Field], payload: String, stamp: String
    ) -> String {
        let lines = headers.map { Field($0.name.lowercased(), Self.squeezed($0.value)) }.sorted { $0.name < $1.name }
        let request = [
            method, path, Self.text(query), lines.map { "\($0.name):\($0.value)\n" }.joined(), Self.names(headers),
            payload,
        ].joined(separator: "\n")
        let text = "\(Self.algorithm)\n\(stamp)\n\(scope(stamp))\n\(Self.hash(Array(request.utf8)))"
        var key = Array("AWS4\(secretKey)".utf8)
        for part in [String(stamp.prefix(8)), region, "s3", "aws4_request", text] {
            key = HMAC.sha256(Array(part.utf8), key: key)
        }
        return Hexadecimal.text(key)
    }

    private static func names(_ headers: [Field]) -> String {
        headers.map { $0.name.lowercased() }.sorted().joined(separator: ";")
    }

    /// The form in which the query is signed and sent.
    package static func text(_ query: [Field]) -> String {
        query.map { (encoded($0.name), encoded($0.value)) }.sorted { $0 < $1 }.map { "\($0)=\($1)" }
            .joined(separator: "&")
    }

    private static func squeezed(_ value: String) -> String {
        value.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
    }

    /// Everything but letters, digits and `-._~` as `%XX`.
    package static func encoded(_ text: String, keepingSlashes: Bool = false) -> String {
        PercentEncoding.encoded(text) { PercentEncoding.isUnreserved($0) || keepingSlashes && $0 == UInt8(ascii: "/") }
    }

    package static func hash(_ bytes: [UInt8]) -> String {
        Hexadecimal.text(SHA256Digest.of(bytes))
    }

    /// `20130524T000000Z`
    static func stamp(_ date: Date) -> String {
        let seconds = Int(date.timeIntervalSince1970.rounded(.down))
        let (day, rest) = seconds.quotientAndRemainder(dividingBy: 86_400)
        // From days to a date, with years that begin in March.
        let shifted = day + 719_468
        let era = shifted / 146_097
        let ofEra = shifted - era * 146_097
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * ofYear + 2) / 153
        let dayOfMonth = ofYear - (153 * month + 2) / 5 + 1
        let civil = month < 10 ? month + 3 : month - 9
        let year = era * 400 + yearOfEra + (civil <= 2 ? 1 : 0)
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(year)\(two(civil))\(two(dayOfMonth))T\(two(rest / 3600))\(two(rest / 60 % 60))\(two(rest % 60))Z"
    }
}
