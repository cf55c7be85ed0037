import CCrypto
import Digests

/// A password, hashed by scrypt with a salt of its own: `scrypt$15$8$1$salt$hash`. Slow on purpose, about a tenth of a second.
package struct PasswordHash: Sendable, Equatable, CustomStringConvertible {
    private let cost: Int
    private let blocks: UInt64
    private let lanes: UInt64
    private let salt: [UInt8]
    private let hash: [UInt8]

    package static let shortestPassword = 10

    /// Hashes a new password.
    package static func of(_ password: String) -> PasswordHash {
        var random = SystemRandomNumberGenerator()
        let salt = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        return PasswordHash(cost: 15, blocks: 8, lanes: 1, salt: salt, password: password)
    }

    /// No password fits it; comparing takes the usual time.
    package static let ofNobody = PasswordHash(
        cost: 15, blocks: 8, lanes: 1, salt: [UInt8](repeating: 0, count: 16), hash: [UInt8](repeating: 0, count: 32))

    private init(cost: Int, blocks: UInt64, lanes: UInt64, salt: [UInt8], hash: [UInt8]) {
        self.cost = cost
        self.blocks = blocks
        self.lanes = lanes
        self.salt = salt
        self.hash = hash
    }

    private init(cost: Int, blocks: UInt64, lanes: UInt64, salt: [UInt8], password: String) {
        self.init(
            cost: cost, blocks: blocks, lanes: lanes, salt: salt,
            hash: Self.derive(password, cost: cost, blocks: blocks, lanes: lanes, salt: salt))
    }

    /// Reads what `description` writes; costs that a machine could not bear are refused.
    package init?(_ text: String) {
        let parts = text.split(separator: "$", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 6, parts[0] == "scrypt", let cost = Int(parts[1]), (14...18).contains(cost),
            let blocks = UInt64(parts[2]), blocks == 8, let lanes = UInt64(parts[3]), (1...4).contains(lanes),
            let salt = Base64URL.decode(parts[4]), salt.count >= 16, let hash = Base64URL.decode(parts[5]),
            hash.count == 32
        else { return nil }
        self.init(cost: cost, blocks: blocks, lanes: lanes, salt: salt, hash: hash)
    }

    package func matches(_ password: String) -> Bool {
        let derived = Self.derive(password, cost: cost, blocks: blocks, lanes: lanes, salt: salt)
        return HMAC.areEqual(derived, hash)
    }

    private static func derive(
        _ password: String, cost: Int, blocks: UInt64, lanes: UInt64, salt: [UInt8]
    ) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: 32)
        let bytes = password.utf8.map { CChar(bitPattern: $0) }
        let made = EVP_PBE_scrypt(
            bytes, bytes.count, salt, salt.count, UInt64(1) << UInt64(cost), blocks, lanes, 512 << 20, &out, out.count)
        precondition(made == 1, "libcrypto refused to hash a password")
        return out
    }

    package var description: String {
        ["scrypt", "\(cost)", "\(blocks)", "\(lanes)", Base64URL.encode(salt), Base64URL.encode(hash)]
            .joined(separator: "$")
    }
}
