import Foundation
import TestSupport
import Testing

/// The real executable writes, checks, publishes and renders templates.
@Suite struct TemplateCommandTests {
    static func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "mails-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }

    static func write(_ text: String, _ path: String) throws {
        let folder = URL(filePath: path).deletingLastPathComponent().path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try text.write(toFile: path, atomically: true, encoding: .utf8)
    }

    static func run(
        _ arguments: [String], database: String = "", exit: Int32 = 0, environment: [String: String] = [:]
    ) async throws -> String {
        let process = try MillraceProcess(["templates"] + arguments, database: database, environment: environment)
        let status = try await process.ended()
        #expect(status == exit, "\(arguments): \(process.output)")
        return process.output
    }

    @Test func `a template is taken out, changed, checked, published, compared and taken back`() async throws {
        try await withDatabase { database in
            try await Self.withFolder { folder in
                func millrace(_ arguments: String..., exit: Int32 = 0) async throws -> String {
                    try await Self.run(arguments, database: database.url, exit: exit)
                }
                let data = #"{"app_name": "A", "user_name": "B"}"#
                #expect(try await millrace("list", "--name", "welcome").contains("built in"))
                _ = try await millrace("show", "welcome", "--to", folder)
                _ = try await millrace("show", "welcome", "--to", folder, exit: 4)
                #expect(try await millrace("lint", folder).contains("nothing to fix"))
                try Self.write("Good to see you at {{app_name}}\n", folder + "/welcome/en/subject.txt")
                #expect(try await millrace("diff", "welcome", "--dir", folder).contains("+1: Good to see you"))
                #expect(try await millrace("publish", folder, "--dry-run").contains("would be published"))
                #expect(
                    try await millrace("render", "--name", "welcome", "--data", data, "--part", "subject")
                        == "Welcome to A!\n")
                #expect(try await millrace("publish", folder, "--note", "warmer").contains("version 1"))
                #expect(try await millrace("publish", folder).contains("as it is, version 1"))
                let mail = try await millrace(
                    "render", "--name", "welcome", "--locale", "en-GB", "--data", data, "--json")
                #expect(
                    mail.contains("\"subject\": \"Good to see you at A\"") && mail.contains("\"template_version\": 1"))
                #expect(try await millrace("list", "--name", "welcome", "--jsonl").contains("\"note\":\"warmer\""))
                let shown = try await millrace("show", "welcome", "--json")
                #expect(shown.contains("\"live\": true") && shown.contains("\"note\": \"warmer\""))
                #expect(
                    try await millrace("show", "welcome", "--version", "0", "--json").contains(
                        "\"template_version\": 0"))
                #expect(try await millrace("use", "welcome", "0").contains("version 0 is live"))
                #expect(try await millrace("use", "welcome", "0").contains("already"))
                _ = try await millrace("use", "welcome", "7", exit: 3)
                _ = try await millrace("show", "absent", exit: 3)
                #expect(try await millrace("diff", "welcome", "--from", "0", "--to", "1").contains("-1: Welcome to"))
            }
        }
    }

    @Test func `a version that SQL has published is told as unchecked, then as live or refused with the reason`()
        async throws
    {
        try await withDatabase { database in
            func millrace(_ arguments: String..., exit: Int32 = 0) async throws -> String {
                try await Self.run(arguments, database: database.url, exit: exit)
            }
            let connection = try await database.connect()
            func publish(_ html: String) async throws {
                try await connection.run(
                    "select millrace.template_publish('hello', 'S', '\(html)', 'T {{v}}', '{\"v\": {}}')")
            }
            try await publish("<p>{{v}}</p>")
            #expect(try await millrace("list", "--name", "hello").contains("unchecked"))
            #expect(try await millrace("show", "hello", "--version", "1").contains("version 1, unchecked"))
            #expect(try await millrace("use", "hello", "1").contains("version 1 is live already"))
            try await publish("<p title={{v}}>")
            #expect(try await millrace("use", "hello", "2", exit: 2).contains("without quotes"))
            let listed = try await millrace("list", "--name", "hello")
            #expect(listed.contains("refused") && listed.contains("without quotes") && listed.contains("live"))
            #expect(try await millrace("show", "hello", "--version", "2").contains("problem    html, line 1"))
            #expect(
                try await millrace("show", "hello", "--version", "2", "--json").contains("\"problem\": \"html, line 1"))
        }
    }

    @Test func `what lint finds has its file and line, ends with 1, and is not published`() async throws {
        try await withDatabase { database in
            try await Self.withFolder { folder in
                try Self.write("Hi", folder + "/bad/en/subject.txt")
                try Self.write("<p>\n<a href=\"javascript:x\">{{who}}</a>", folder + "/bad/en/body.html")
                let said = try await Self.run(["lint", folder], exit: 1)
                #expect(said.contains("bad/en/body.html:2: the variable who is not declared"))
                #expect(
                    said.contains("bad/en/body.html:2: an address")
                        && said.contains("bad/en/body.txt:1: there is no text part"))
                let json = try await Self.run(["lint", folder, "--json"], exit: 1)
                #expect(json.contains("\"version\": 1") && json.contains("\"line\": 2"))
                let refused = try await Self.run(["publish", folder], database: database.url, exit: 2)
                #expect(refused.contains("nothing was published"))
                #expect(try await !Self.run(["list"], database: database.url).contains("bad"))
                _ = try await Self.run(["lint", folder + "/absent"], exit: 2)
            }
        }
    }

    @Test func `a file is rendered without a database`() async throws {
        try await Self.withFolder { folder in
            try Self.write("Dear {{name}},\n  {{>sign}}\n", folder + "/a.mustache")
            try Self.write("Yours\n{{from}}\n", folder + "/parts/sign.mustache")
            try Self.write(#"{"name": "A & B", "from": "C"}"#, folder + "/data.json")
            try Self.write("<a href=\"{{name}}\">", folder + "/a.html")
            try Self.write("{{name}}", folder + "/m/a.txt")
            try Self.write(#"{"name": {"required": true}}"#, folder + "/m/variables.json")
            #expect(
                try await Self.run([
                    "render", folder + "/a.mustache", "--data", "@" + folder + "/data.json", "--partials",
                    folder + "/parts", "--plain",
                ])
                    == "Dear A &amp; B,\n  Yours\n  C\n")
            let unsafe = try await Self.run(
                ["render", folder + "/a.html", "--data", #"{"name": "javascript:alert(1)"}"#], exit: 2)
            #expect(unsafe.contains("name") && !unsafe.contains("alert"))
            #expect(try await Self.run(["render", folder + "/m/a.txt", "--data", #"{"name": "<"}"#]) == "<")
            #expect(
                try await Self.run(["render", folder + "/m/a.txt"], exit: 2).contains("the variable name is missing"))
            _ = try await Self.run(["render", folder + "/a.mustache", "--data", "{", "--plain"], exit: 2)
            _ = try await Self.run(["render", folder + "/absent"], exit: 2)
            _ = try await Self.run(["render"], exit: 2)
        }
    }

    static let isThere = ["/usr/bin/chromium", "/usr/bin/python3"].allSatisfy(FileManager.default.isExecutableFile)

    @Test(.enabled(if: isThere, "SKIPPED: without Chromium nobody looks at the mails; apt-get install chromium"))
    func `a browser shows the built-in mails whole, legible and without asking anybody`() async throws {
        try await Self.withFolder { folder in
            let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent()
            let said = try await Program.check(
                "env",
                [
                    "MILLRACE=\(MillraceProcess.executable.path)", root.appending(path: "deploy/checks/mails").path,
                    "--out", folder,
                ])
            #expect(said.contains("48 views, 0 bad"))
        }
    }
}
