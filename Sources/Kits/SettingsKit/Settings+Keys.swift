package import Encryption

extension Settings {
    /// Checked when it was read: what cannot be used never comes this far.
    package var keys: Keyring {
        text(.encryptionKeys).flatMap { try? Keyring($0) } ?? .empty
    }

    /// Describes a mistake in a list of keys, without its contents.
    package static func complaint(aboutKeys list: String) -> String? {
        do {
            _ = try Keyring(list)
            return nil
        } catch .unusableKeys(let reason) {
            return "cannot be used: \(reason)"
        } catch {
            return "cannot be used"
        }
    }
}
