@testable import MillraceCommand

extension Target {
    /// Separated by NUL, as a process gets them.
    func arguments(_ bytes: [UInt8]) -> String? {
        let words = bytes.split(separator: 0, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        switch Parser(tree: Verbs.tree, environment: [:]).parse(words) {
        case .run(let parsed), .version(let parsed):
            return parsed.flags.values.allSatisfy { !$0.values.isEmpty } ? nil : "a flag without a value"
        case .help(let path):
            return HelpPage(tree: Verbs.tree, columns: 80).text(for: path).isEmpty ? "no help" : nil
        case .misuse(let misuse):
            return misuse.isEmptyLine || !misuse.problems.isEmpty ? nil : "refused without a reason"
        }
    }

    /// The first byte says how large the pieces are in which the file arrives.
    func batch(_ bytes: [UInt8]) -> String? {
        guard let size = bytes.first.map({ Int($0) + 1 }) else { return nil }
        var pieces: [[UInt8]] = []
        var rest = bytes.dropFirst()
        while !rest.isEmpty {
            pieces.append(Array(rest.prefix(size)))
            rest = rest.dropFirst(size)
        }
        var lines = Lines(FileChunks(pieces))
        while let line = (try? lines.next()) ?? nil {
            guard let value = try? JSONValue.read(line) else { continue }
            do throws(JSONProblem) {
                guard try JSONValue.read(value.compact) == value else { return "another document comes back" }
            } catch {
                return "what was written is refused: \(error.sentence)"
            }
        }
        return nil
    }

    func duration(_ bytes: [UInt8]) -> String? {
        guard let duration = DurationText.read(String(decoding: bytes, as: UTF8.self)) else { return nil }
        return DurationText.read(DurationText.spell(duration)) == duration ? nil : "another duration comes back"
    }

    func instant(_ bytes: [UInt8]) -> String? {
        guard let date = try? InstantText.read(String(decoding: bytes, as: UTF8.self)) else { return nil }
        let text = InstantText.spell(date)
        do throws(ValueRefusal) {
            return try InstantText.spell(InstantText.read(text)) == text ? nil : "another time comes back than \(text)"
        } catch {
            return "\(text) is refused: \(error)"
        }
    }

    /// An environment, a variable a line. What it names as files holds its last line.
    func settings(_ bytes: [UInt8]) -> String? {
        var environment: [String: String] = [:]
        let lines = bytes.split(separator: 10)
        for line in lines {
            let pair = line.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2 else { continue }
            environment[String(decoding: pair[0], as: UTF8.self)] = String(decoding: pair[1], as: UTF8.self)
        }
        let file = Array(lines.last ?? [])
        let surroundings = Surroundings(
            environment: environment, workingDirectory: "/", isWritableDirectory: { _ in false },
            read: { _, _ throws(FileProblem) in file }, chunks: { _ throws(FileProblem) in FileChunks([file]) },
            ask: { _ in nil })
        let settings = Settings.load(parsed: nil, surroundings: surroundings)
        for entry in settings.entries { _ = entry.shown }
        if settings.problems.isEmpty { _ = settings.database }
        return settings.entries.count == Setting.all.count ? nil : "a setting is missing"
    }

    /// A password must not be shown, and the shown text must be readable again.
    func connection(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        let shown = Secrets.masked(connection: text)
        guard let connection = try? ConnectionText(text) else {
            return shown == Secrets.mask ? nil : "a text that is refused is shown"
        }
        guard let again = try? ConnectionText(shown) else {
            // A value that would look like the beginning of a URL had its backslashes taken away: that is for people to read.
            return connection.form == .pairs && shown.contains("://") ? nil : "what is shown cannot be read: \(shown)"
        }
        guard again.parts.count == connection.parts.count else { return "a part is lost" }
        let leaks = again.parts.contains { $0.key == "password" && $0.value != Secrets.mask }
        return leaks ? "the password is shown" : nil
    }
}
