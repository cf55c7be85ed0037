import Calendars
import FoundationEssentials

extension ValueKind {
    /// With the schema's rule for names.
    package static let queueName = ValueKind.custom(expects: "a queue's name") { text in
        QueueSlots.isName(text[...])
            ? nil
            : "takes a queue's name, 1 to 128 letters, digits and _ . / - behind a letter or digit, not "
                + Secrets.quoted(text)
    }

    package static let kindName = nameWithColons(of: "a kind")

    package static let scheduleName = nameWithColons(of: "a schedule")

    private static func nameWithColons(of what: String) -> ValueKind {
        .custom(expects: "\(what)'s name") { text in
            // A colon is what these may have and queues may not.
            let plain = text.first == ":" ? text : text.split(separator: ":", omittingEmptySubsequences: false).joined()
            return QueueSlots.isName(plain[...]) && text.utf8.count <= 128
                ? nil
                : "takes \(what)'s name, 1 to 128 letters, digits and _ . : / - behind a letter or digit, not "
                    + Secrets.quoted(text)
        }
    }

    package static let timetable = ValueKind.custom(expects: "a cron expression, or an interval such as every 15m") {
        text in
        do throws(ExpressionError) {
            _ = try Timetable(text)
            return nil
        } catch {
            return "is wrong: \(error)"
        }
    }

    package static let zone = ValueKind.custom(expects: "a time zone such as Europe/Berlin") { text in
        do throws(ZoneError) {
            _ = try ZoneFiles.system.zone(text)
            return nil
        } catch .unknown(let name, nil) {
            let guess = Suggestions.closest(to: name, among: ZoneFiles.system.names)
            return "is wrong: \(ZoneError.unknown(name, near: guess))"
        } catch {
            return "is wrong: \(error)"
        }
    }

    package static let provider = ValueKind.custom(expects: "a provider's name") { text in
        let isOne = text.wholeMatch(of: /[a-z0-9][a-z0-9_.:-]{0,127}/) != nil
        return isOne ? nil : "takes a provider's name: lower-case letters, digits and _ . : -"
    }

    package static let uuid = ValueKind.custom(expects: "a UUID") { text in
        UUID(uuidString: text) == nil ? "takes a UUID, not \(Secrets.quoted(text))" : nil
    }

    package static let jobID = ValueKind.integer(1...Int.max)

    package static let moment = ValueKind.custom(expects: PastTimeText.expectation) { text in
        do throws(ValueRefusal) {
            _ = try PastTimeText.read(text)
            return nil
        } catch {
            return error.complaint
        }
    }

    package static let instant = ValueKind.custom(expects: InstantText.expectation) { text in
        do throws(ValueRefusal) {
            _ = try InstantText.read(text)
            return nil
        } catch {
            return error.complaint
        }
    }
}

extension Parsed {
    /// Every whole number of a repeated flag or of an argument that takes many.
    package func integers(_ name: String) -> [Int] {
        (arguments[name] ?? flags[name]?.values ?? []).compactMap { value in
            guard case .integer(let number) = value else { return nil }
            return number
        }
    }
}
