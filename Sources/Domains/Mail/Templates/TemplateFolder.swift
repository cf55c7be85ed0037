import CommandKit
import FoundationEssentials
import Templates

/// `<name>/<locale>/{subject.txt,body.html,body.txt,variables.json}`
struct TemplateFolder: Sendable {
    let name: String
    let locale: String
    let path: String

    /// Every template in a folder of names, in that of one name, or in that of one locale.
    static func find(_ directory: String) throws(Failure) -> [TemplateFolder] {
        let root = absolute(directory)
        if isTemplate(root) { return [try one(root)] }
        var found: [TemplateFolder] = []
        for inner in try folders(in: root) {
            if isTemplate(inner) {
                found.append(try one(inner))
            } else {
                for last in try folders(in: inner) where isTemplate(last) { found.append(try one(last)) }
            }
        }
        guard !found.isEmpty else {
            throw Failure(
                .misused, "\(Secrets.quoted(directory)) holds no template",
                hint: "a template is <name>/<locale>/ with subject.txt, body.txt, body.html and variables.json")
        }
        return found
    }

    func read() throws(Failure) -> MailSource {
        func file(_ name: String) throws(Failure) -> String? {
            guard FileManager.default.fileExists(atPath: path + "/" + name) else { return nil }
            guard let bytes = FileManager.default.contents(atPath: path + "/" + name) else {
                throw Failure(.misused, "\(path)/\(name) cannot be read")
            }
            guard bytes.count <= 1 << 20 else { throw Failure(.misused, "\(path)/\(name) is larger than 1 MiB") }
            guard let text = String(validating: bytes, as: UTF8.self), !text.utf8.contains(0) else {
                throw Failure(.misused, "\(path)/\(name) is not UTF-8 text")
            }
            return text
        }
        var subject = try file("subject.txt") ?? ""
        if subject.hasSuffix("\r\n") || subject.hasSuffix("\n") { subject.removeLast() }
        return MailSource(
            name: name, locale: locale, version: 0, subject: subject, html: try file("body.html"),
            plain: try file("body.txt") ?? "", variables: Array((try file("variables.json") ?? "{}").utf8))
    }

    /// The file of a part, for messages.
    func file(of part: String) -> String {
        let names = ["subject": "subject.txt", "html": "body.html", "text": "body.txt", "variables": "variables.json"]
        return "\(path)/\(names[part] ?? part)"
    }

    static func write(_ source: MailSource, to directory: String) throws(Failure) -> String {
        let path = "\(absolute(directory))/\(source.name)/\(source.locale)"
        var files = [
            "subject.txt": source.subject + "\n", "body.txt": source.plain,
            "variables.json": String(decoding: source.variables, as: UTF8.self) + "\n",
        ]
        files["body.html"] = source.html
        do {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            for (name, text) in files {
                let file = path + "/" + name
                guard !FileManager.default.fileExists(atPath: file) else {
                    throw Failure(.conflict, "\(file) exists", hint: "write to another folder, or remove it first")
                }
                try Data(text.utf8).write(to: URL(filePath: file))
            }
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure("\(path) cannot be written")
        }
        return path
    }

    private static func one(_ path: String) throws(Failure) -> TemplateFolder {
        let parts = path.split(separator: "/").map(String.init)
        guard parts.count >= 2, let locale = parts.last, LocaleChain.isLocale(locale) else {
            throw Failure(
                .misused, "\(Secrets.quoted(path)) is not named for a locale",
                hint: "such as welcome/en or welcome/pt-BR")
        }
        return TemplateFolder(name: parts[parts.count - 2], locale: locale, path: path)
    }

    private static func isTemplate(_ path: String) -> Bool {
        ["subject.txt", "body.txt", "body.html"].contains { FileManager.default.fileExists(atPath: path + "/" + $0) }
    }

    private static func folders(in path: String) throws(Failure) -> [String] {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: path)
        } catch {
            throw Failure(.misused, "the folder \(Secrets.quoted(path)) cannot be read")
        }
        return names.sorted().filter { !$0.hasPrefix(".") }.map { path + "/" + $0 }.filter { path in
            var isDirectory = false
            return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && isDirectory
        }
    }

    private static func absolute(_ path: String) -> String {
        let full = path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
        return URL(filePath: full).standardizedFileURL.path.trimmedEnd
    }
}

extension String {
    fileprivate var trimmedEnd: String { count > 1 && hasSuffix("/") ? String(dropLast()) : self }
}

/// The differences, line by line and part by part.
enum TemplateDiff {
    static func lines(from old: MailSource, to new: MailSource) -> [String] {
        let parts: [(String, String, String)] = [
            ("subject", old.subject, new.subject),
            (
                "variables", String(decoding: old.variables, as: UTF8.self),
                String(decoding: new.variables, as: UTF8.self)
            ),
            ("text", old.plain, new.plain), ("html", old.html ?? "", new.html ?? ""),
        ]
        return parts.flatMap { name, old, new in
            // Documents with the same contents are equal, however they are spaced.
            name == "variables" && (try? Variables(json: Array(old.utf8))) == (try? Variables(json: Array(new.utf8)))
                ? [] : part(name, split(old), split(new))
        }
    }

    private static func split(_ text: String) -> [Substring] {
        text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    private static func part(_ name: String, _ old: [Substring], _ new: [Substring]) -> [String] {
        let difference = new.difference(from: old)
        guard !difference.isEmpty else { return [] }
        var changes: [(line: Int, text: String)] = []
        for change in difference {
            switch change {
            case .remove(let offset, let text, _): changes.append((offset, "-\(offset + 1): \(text)"))
            case .insert(let offset, let text, _): changes.append((offset, "+\(offset + 1): \(text)"))
            }
        }
        let sorted = changes.sorted {
            ($0.line, $0.text.hasPrefix("+") ? 1 : 0) < ($1.line, $1.text.hasPrefix("+") ? 1 : 0)
        }
        return ["@ \(name)"] + sorted.map(\.text)
    }
}
