import Seals

extension Settings {
    /// Checked when it was read: what cannot be used never comes this far.
    var keys: Keyring {
        text(.encryptionKeys).flatMap { try? Keyring($0) } ?? .empty
    }

    /// Says what is wrong with a list of keys, and never what it holds.
    static func complaint(aboutKeys list: String) -> String? {
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

extension Invocation {
    /// The keys, where a verb cannot do without.
    func neededKeys() throws(Failure) -> Keyring {
        let keys = settings.keys
        guard !keys.keys.isEmpty else {
            throw Failure(
                .misused, "there is no encryption key here",
                hint: "set MILLRACE_ENCRYPTION_KEY, or MILLRACE_ENCRYPTION_KEY_FILE; millrace keys generate makes a key"
            )
        }
        return keys
    }
}
