extension ValueKind {
    /// As the schema has it.
    static let queueName = ValueKind.custom(expects: "a queue's name") { text in
        QueueSlots.isName(text[...])
            ? nil
            : "takes a queue's name, 1 to 128 letters, digits and the signs _ . / - behind a letter or digit, not "
                + Secrets.quoted(text)
    }

    static let kindName = ValueKind.custom(expects: "a kind's name") { text in
        // A colon is what kinds may have and queues may not.
        let plain = text.first == ":" ? text : text.split(separator: ":", omittingEmptySubsequences: false).joined()
        return QueueSlots.isName(plain[...]) && text.utf8.count <= 128
            ? nil
            : "takes a kind's name, 1 to 128 letters, digits and the signs _ . : / - behind a letter or digit, not "
                + Secrets.quoted(text)
    }

    static let jobID = ValueKind.integer(1...Int.max)

    static let instant = ValueKind.custom(expects: InstantText.expectation) { text in
        do throws(Refusal) {
            _ = try InstantText.read(text)
            return nil
        } catch {
            return error.complaint
        }
    }
}

extension Parsed {
    /// Every whole number of a repeated flag or of an argument that takes many.
    func integers(_ name: String) -> [Int] {
        (arguments[name] ?? flags[name]?.values ?? []).compactMap { value in
            guard case .integer(let number) = value else { return nil }
            return number
        }
    }
}
