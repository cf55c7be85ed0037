import Encryption
import Signatures

/// Users from a file: a line each, `name:role:hash`. `millrace console --make-user` prints such a line.
package struct ConsoleUsers: Sendable {
    package struct Malformed: Error, Sendable, CustomStringConvertible {
        package let line: Int
        package let reason: String
        package var description: String { "line \(line): \(reason)" }
    }

    struct User: Sendable {
        let name: String
        let role: ConsoleRole
        let hash: PasswordHash
        /// A session is of this line: it ends when the line changes.
        let mark: String
    }

    let users: [String: User]

    package var isEmpty: Bool { users.isEmpty }

    package init(parsing text: String) throws(Malformed) {
        var users: [String: User] = [:]
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let line = String(line).trimmingASCIISpace()
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            let user = try Self.user(line, number: index + 1)
            guard users.updateValue(user, forKey: user.name) == nil else {
                throw Malformed(line: index + 1, reason: "the name \(user.name) appears twice")
            }
        }
        self.users = users
    }

    private static func user(_ line: String, number: Int) throws(Malformed) -> User {
        let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3 else { throw Malformed(line: number, reason: "it is not name:role:hash") }
        guard (1...64).contains(parts[0].utf8.count), !parts[0].contains("|") else {
            throw Malformed(line: number, reason: "a name has 1 to 64 bytes, and no |")
        }
        guard let role = ConsoleRole(rawValue: parts[1]) else {
            throw Malformed(line: number, reason: "the role is viewer, operator or admin")
        }
        guard let hash = PasswordHash(parts[2]) else {
            throw Malformed(line: number, reason: "the hash is not one that millrace console --make-user prints")
        }
        return User(name: parts[0], role: role, hash: hash, mark: Marks.of(line))
    }

    /// Takes as long for an unknown name as for a wrong password.
    func user(named name: String, password: String) -> User? {
        let known = users[name]
        let fits = (known?.hash ?? .ofNobody).matches(password)
        return fits ? known : nil
    }
}

/// A short digest, to notice that a text has changed.
enum Marks {
    static func of(_ text: String, key: [UInt8] = Array("millrace console".utf8)) -> String {
        Base64URL.encode(Array(HMAC.sha256(Array("mark 1:\(text)".utf8), key: key).prefix(12)))
    }
}

extension String {
    fileprivate func trimmingASCIISpace() -> String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0 == "\r" }
        return String(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
    }
}
