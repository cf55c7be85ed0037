import Foundation
import Testing

/// A row of the second table of `deploy/guides/limits.md`: what is counted, and whose count it is.
struct CountedBound: Sendable, CustomTestStringConvertible {
    let name: String
    let most: String
    let counted: String
    let whose: String
    var testDescription: String { "\(name), each \(whose)'s" }

    /// As the page prints it.
    var line: String { "| \(name) | \(most) | \(counted) | \(whose) |" }

    static let page = Result {
        let path = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../deploy/guides/limits.md")
        let lines = try String(contentsOf: path, encoding: .utf8).split(separator: "\n")
        return lines.drop { $0 != "| bound | at most | counted | whose |" }.prefix { $0.hasPrefix("|") }.dropFirst(2)
            .map { line in
                let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
                return CountedBound(name: cells[0], most: cells[1], counted: cells[2], whose: cells[3])
            }
    }
}

/// Who makes a call that is counted. Names stand in curly braces in the texts of cases.
struct CountedCaller: Sendable {
    /// A role of `DoorWorld`.
    var role = "signed in"
    var person = "greedy"
    /// nil: the claims name none, or there are none.
    var tenant: String?
    var family = "f"
    /// A job's token, a webhook or a kind, for bounds of theirs.
    var object = ""

    static let greedy = CountedCaller(tenant: "shop")

    /// The greedy one, and those whose calls have to go through all the same, by the page's word for whose bound it is.
    static func pair(_ whose: String) -> (greedy: CountedCaller, others: [CountedCaller])? {
        var other = greedy
        other.person = "other"
        let back = CountedCaller(role: "back end", person: "server")
        switch whose {
        // One of the same tenant and family; for an address, with the same address.
        case "person", "address", "person and address": return (greedy, [other])
        case "tenant":
            other.tenant = "mill"
            return (greedy, [other])
        // A tenant may be called like the family.
        case "family":
            other.family = "g"
            var tenant = other
            (tenant.person, tenant.tenant) = ("third", "f")
            return (greedy, [other, tenant])
        case "role and tenant":
            other.tenant = "mill"
            return (greedy, [other, back])
        case "role, tenant and sender":
            let client = CountedCaller(role: "client", person: "sender")
            var mill = client
            mill.tenant = "mill"
            return (client, [mill, back])
        case "job", "webhook", "kind":
            return (
                CountedCaller(role: "owner", object: "greedy's"),
                [CountedCaller(role: "owner", person: "other", object: "other's")]
            )
        default: return nil
        }
    }
}

/// How a bound is reached.
struct CountedCase: Sendable {
    /// What the owner prepares for each caller.
    var prepared = ""
    /// Takes one, if nothing is left of it refuses. {n} is another number for each call.
    let call: String
    /// After the first call: the owner adds up what the caller would have to do too often for a test.
    var raised = ""
    /// What the owner does after each call.
    var then = ""
    /// In SQL, whether the call was let through; {id} is what it returned. Empty: it was not refused.
    var through = ""
}
