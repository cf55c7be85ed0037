package import Encryption

extension Settings {
    /// Checked when it was read: what cannot be used never comes this far.
    package var keys: Keyring {
        text(.encryptionKeys).flatMap { try? Keyring($0) } ?? .empty
    }

    /// Says what is wrong with a list of keys, and never what it holds.
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
