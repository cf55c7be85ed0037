package import FoundationEssentials
package import JSON

/// Documents that Apple's App Store signs (JWS with ES256 and a chain of certificates, x5c): notifications, and the transactions in them.
package struct AppStoreSignature: Sendable {
    package enum Refusal: String, Error, Sendable {
        case malformed = "it is not a well-formed signed document"
        case algorithm = "its algorithm is not ES256"
        case chain = "its certificates do not lead to a root that is trusted here"
        case signature = "its signature is wrong"
        case bundle = "it is for another app"
        case app = "it is for another app of the store, or does not say for which"
        case environment = "it is of another environment"
    }

    private let roots: CertificateRoots
    package let bundle: String
    /// `Production`, `Sandbox`.
    package let environments: [String]
    /// Apple's number of the app, which production names beside the bundle; nil: the bundle alone says which app it is.
    package let appID: Int?

    package static let mostBytes = 131_072
    private static let leafMark = "1.2.840.113635.100.6.11.1"
    private static let intermediateMark = "1.2.840.113635.100.6.2.1"

    package init(roots: CertificateRoots, bundle: String, environments: [String], appID: Int? = nil) {
        self.roots = roots
        self.bundle = bundle
        self.environments = environments
        self.appID = appID
    }

    /// The notification with its transaction and renewal decoded: `data.transaction` and `data.renewal`. All three are checked.
    package func notification(_ signed: String, at now: Date) throws(Refusal) -> JSONValue {
        let notification = try payload(of: signed, at: now)
        guard case .object(let members) = notification else { throw .malformed }
        guard case .object(let data)? = notification["data"] else {
            // Such as a summary of many renewals: about no subscription alone.
            return notification
        }
        guard notification["data"]?["bundleId"]?.text == bundle else { throw .bundle }
        guard let environment = notification["data"]?["environment"]?.text, environments.contains(environment) else {
            throw .environment
        }
        // The sandbox has no apps of the store, and names no number.
        if let appID, environment == "Production", notification["data"]?["appAppleId"]?.integer != appID {
            throw .app
        }
        var known = data.filter { !["transaction", "renewal"].contains($0.key) }
        for (from, to) in [("signedTransactionInfo", "transaction"), ("signedRenewalInfo", "renewal")] {
            known.removeAll { $0.key == from }
            guard let inner = notification["data"]?[from], inner != .null else { continue }
            guard let text = inner.text else { throw .malformed }
            let document = try payload(of: text, at: now)
            if let named = document["bundleId"], named.text != bundle { throw .bundle }
            if let named = document["environment"], named.text != environment { throw .environment }
            known.append(.init(key: to, value: document))
        }
        return .object(members.filter { $0.key != "data" } + [.init(key: "data", value: .object(known))])
    }

    package func payload(of signed: String, at now: Date) throws(Refusal) -> JSONValue {
        guard signed.utf8.count <= Self.mostBytes else { throw .malformed }
        let parts = signed.split(separator: ".", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, let head = Base64URL.decode(parts[0]), let body = Base64URL.decode(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { throw .malformed }
        let header = try Self.object(head)
        guard header["crit"] == nil, header["b64"] == nil else { throw .malformed }
        guard header["alg"]?.text == "ES256" else { throw .algorithm }
        guard let items = header["x5c"]?.items, (2...4).contains(items.count) else { throw .chain }
        let chain = items.compactMap { item in
            item.text.flatMap { Data(base64Encoded: $0) }.map { Array($0) }
        }
        guard chain.count == items.count,
            let key = roots.key(
                of: chain, at: now, leafMark: Self.leafMark, intermediateMark: Self.intermediateMark),
            key.algorithm == .es256
        else { throw .chain }
        let message = Array(signed.utf8.prefix(parts[0].utf8.count + 1 + parts[1].utf8.count))
        guard key.verifies(message, signature: signature) else { throw .signature }
        return try Self.object(body)
    }

    private static func object(_ bytes: [UInt8]) throws(Refusal) -> JSONValue {
        var reader = JSONReader(bytes, rules: JSONReader.Rules(deepest: 16, allowsRepeatedKeys: false))
        guard let value = try? reader.document(), case .object = value else { throw .malformed }
        return value
    }
}
