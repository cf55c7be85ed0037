package import Encryption

/// The keys for the arguments of encrypted kinds: the first encrypts, and each decrypts what it has encrypted.
public struct EncryptionKeys: Sendable {
    private enum Source: Sendable {
        case environment
        case list(String)
        case none
    }

    private let source: Source

    /// `MILLRACE_ENCRYPTION_KEY`, or the file that `MILLRACE_ENCRYPTION_KEY_FILE` names; none where neither is set.
    public static let environment = EncryptionKeys(source: .environment)

    /// No keys: encrypted arguments can neither be written nor read.
    public static let none = EncryptionKeys(source: .none)

    /// Keys as the variable has them: `id:base64,id:base64`, 32 bytes each; without an id one is derived from the key.
    public static func list(_ list: String) -> EncryptionKeys {
        EncryptionKeys(source: .list(list))
    }

    package func ring() throws(QueueError) -> Keyring {
        let text: String?
        switch source {
        case .environment: text = try Database.variable("MILLRACE_ENCRYPTION_KEY")
        case .list(let list): text = list
        case .none: text = nil
        }
        guard let text, !text.isEmpty else { return .empty }
        do {
            return try Keyring(text)
        } catch {
            throw QueueError(error)
        }
    }
}
