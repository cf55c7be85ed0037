/// One of several databases, each a complete Millrace of its own.
package struct NamedDatabase: Sendable, Equatable {
    package let name: String
    /// Secret, as it may hold a password.
    package let url: String
    /// A way around a transaction pooler, if there is one.
    package var direct: String?

    package init(_ name: String, url: String, direct: String? = nil) {
        (self.name, self.url, self.direct) = (name, url, direct)
    }
}

/// `eu=postgres://…, us=postgres://…`: a comma or a line break ends an entry. A URL may contain commas, as it may name several hosts, so an
/// entry ends where the next begins with a name and an equals sign.
package enum DatabaseList {
    package static let expectation = "names with URLs, such as eu=postgres://…, us=postgres://…"
    package static let most = 64
    private static let suffix = ".direct"

    /// Why it cannot be used. It repeats names that are well formed, and nothing of a URL.
    package static func complaint(_ text: String) -> String? {
        do throws(ValueRefusal) {
            _ = try read(text)
            return nil
        } catch {
            return error.complaint
        }
    }

    package static func read(_ text: String) throws(ValueRefusal) -> [NamedDatabase] {
        var found: [NamedDatabase] = []
        var directs: [(name: String, url: String)] = []
        for (number, entry) in try entries(text).enumerated() {
            let isDirect = entry.name.hasSuffix(suffix)
            let name = isDirect ? String(entry.name.dropLast(suffix.count)) : entry.name
            guard isName(name) else {
                throw ValueRefusal(
                    complaint:
                        "has an entry, number \(number + 1), without a proper name: give each 1 to 32 lower-case letters, digits and -, a letter first, as in eu=postgres://…"
                )
            }
            if let complaint = urlComplaint(entry.url) {
                throw ValueRefusal(complaint: "names \(entry.name), whose address \(complaint)")
            }
            if isDirect { directs.append((name, entry.url)) } else { found.append(NamedDatabase(name, url: entry.url)) }
        }
        try check(found, directs)
        return found.map { database in
            NamedDatabase(database.name, url: database.url, direct: directs.first { $0.name == database.name }?.url)
        }
    }

    private static func check(
        _ found: [NamedDatabase], _ directs: [(name: String, url: String)]
    ) throws(ValueRefusal) {
        guard !found.isEmpty else { throw ValueRefusal(complaint: "takes \(expectation)") }
        guard found.count <= most else {
            throw ValueRefusal(complaint: "names \(found.count) databases; one process takes at most \(most)")
        }
        for (index, database) in found.enumerated() {
            let before = found[..<index]
            if before.contains(where: { $0.name == database.name }) {
                throw ValueRefusal(complaint: "names \(database.name) twice: give each database its own name")
            }
            if let same = before.first(where: { $0.url == database.url }) {
                throw ValueRefusal(
                    complaint: "names one address twice, as \(same.name) and \(database.name): keep one of them")
            }
        }
        for (index, direct) in directs.enumerated() {
            guard found.contains(where: { $0.name == direct.name }) else {
                throw ValueRefusal(
                    complaint:
                        "names \(direct.name)\(suffix) without \(direct.name): give \(direct.name)=postgres://…, too")
            }
            if directs[..<index].contains(where: { $0.name == direct.name }) {
                throw ValueRefusal(complaint: "names \(direct.name)\(suffix) twice: keep one of them")
            }
        }
    }

    /// For people: the names, and the addresses without their secrets. A text that cannot be read is masked whole.
    package static func masked(_ text: String) -> String {
        guard let databases = try? read(text) else { return Secrets.mask }
        return databases.flatMap { database in
            ["\(database.name)=\(Secrets.masked(connection: database.url))"]
                + (database.direct.map { ["\(database.name)\(suffix)=\(Secrets.masked(connection: $0))"] } ?? [])
        }.joined(separator: ", ")
    }

    package static func isName(_ text: String) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
        guard let first = text.utf8.first, isLetter(first), text.utf8.count <= 32 else { return false }
        return text.utf8.allSatisfy {
            isLetter($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: "-")
        }
    }

    private static func urlComplaint(_ url: String) -> String? {
        guard url.hasPrefix("postgres://") || url.hasPrefix("postgresql://") else {
            return "must be a postgres:// URL"
        }
        return ConnectionText.complaint(url)
    }

    private static func entries(_ text: String) throws(ValueRefusal) -> [(name: String, url: String)] {
        var entries: [(name: String, url: String)] = []
        for line in text.split(whereSeparator: \.isNewline) {
            var isFirst = true
            for piece in line.split(separator: ",", omittingEmptySubsequences: false) {
                let trimmed = trim(piece)
                defer { isFirst = false }
                if let (name, url) = start(of: trimmed) {
                    entries.append((name, url))
                } else if !isFirst, !entries.isEmpty, !trimmed.isEmpty {
                    entries[entries.count - 1].url += ",\(trimmed)"
                } else if !trimmed.isEmpty {
                    throw ValueRefusal(
                        complaint:
                            "has an entry, number \(entries.count + 1), that does not begin with a name: it takes \(expectation)"
                    )
                }
            }
        }
        return entries
    }

    /// The name in front of the first equals sign. A piece of a URL has one of these signs before it.
    private static func start(of piece: Substring) -> (name: String, url: String)? {
        guard let equals = piece.firstIndex(of: "=") else { return nil }
        let name = piece[..<equals]
        guard !name.contains(where: { "/:@?%&".contains($0) }) else { return nil }
        return (String(trim(name)), String(trim(piece[piece.index(after: equals)...])))
    }

    private static func trim(_ text: Substring) -> Substring {
        var text = text.drop { $0 == " " || $0 == "\t" }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}
