import CommandKit
import FoundationEssentials
import Postgres

extension Command {
    static let mailSend = Command(
        ["mail", "send"],
        summary: "Send a message",
        discussion: """
            Takes the message itself (--subject, and --text, --html or both as files; - is standard input), or a template \
            and its data. Prints the message's id. With --wait it ends when a provider has taken the message, \
            or when it was delivered, and prints the status to standard error: exit 0, 8 when it failed, 4 when the \
            address is suppressed, 7 when --timeout is over.
            """,
        arguments: [Argument("to", .many, help: "the recipients, as local@host or 'Name <local@host>'")],
        flags: [
            .single("subject", "TEXT", environment: .none, help: "The subject."),
            .single("text", "FILE", .path, environment: .none, help: "The text, in a file."),
            .single("html", "FILE", .path, environment: .none, help: "The HTML, in a file."),
            .single("template", "NAME", environment: .none, help: "The template to render."),
            .single(
                "data", "JSON", environment: .none, help: "The template's data: JSON, @file, or - for standard input."),
            .single("locale", "LOCALE", environment: .none, help: "The template's locale, such as pt-BR."),
            .single(
                "person", "ID", environment: .none,
                help: "The reader: the template takes its language and user_name from this person's profile."),
            .repeated("cc", "ADDRESS", environment: .none, help: "Who gets a copy."),
            .repeated("bcc", "ADDRESS", environment: .none, help: "Who gets a copy that the others do not see."),
            .single("reply-to", "ADDRESS", environment: .none, help: "Where answers go."),
            .repeated("attach", "FILE", .path, environment: .none, help: "A file to attach."),
            .repeated("header", "NAME=VALUE", environment: .none, help: "A further header."),
            .repeated("tag", "NAME[=VALUE]", environment: .none, help: "A tag that the provider reports back."),
            .single(
                "priority", "PRIORITY", .choice(["low", "normal", "high", "urgent"]), environment: .none,
                fallback: "normal", help: "How urgent it is."),
            .single(
                "purpose", "PURPOSE", .choice(["transactional", "security", "alarm", "marketing"]), environment: .none,
                fallback: "transactional", help: "What it is for; addresses are suppressed by purpose."),
            .single(
                "on-unknown", "WHAT", .choice(["park", "again"]), environment: .none, fallback: "park",
                help: "When it is unknown whether it was sent: wait for a human, or send it again."),
            .single(
                "at", "TIME", .instant, environment: .none, help: "Not before this time, in ISO 8601 with its zone."),
            .single("expires", "TIME", .instant, environment: .none, help: "Not after this time."),
            .single("sender", "ID", environment: .none, help: "The sender, for the limit on each sender."),
            .single("tenant", "TENANT", environment: .none, help: "The tenant it belongs to."),
            .toggle("receipt", environment: .none, help: "Ask for a receipt."),
            .single("id", "UUID", .uuid, environment: .none, help: "Its id; a new one if not given."),
            .single(
                "wait", "STATUS", .choice(["accepted", "delivered"]), environment: .none,
                help: "Wait until the message has this status."),
        ],
        examples: [
            Example("millrace mail send ada@example.org --subject Hello --text hello.txt", "a plain message"),
            Example(
                "millrace mail send ada@example.org --template welcome --data '{\"user_name\": \"Ada\"}' --wait accepted",
                "a template, and wait until a provider has taken it"),
        ]
    ) { invocation in
        let letter = try invocation.letter()
        let id = try await invocation.withSchema { try await MailAdmin.send(Array(letter.compact.utf8), on: $0) }
        guard let goal = invocation.parsed.string("wait") else {
            invocation.console.show(["id": .string(id)]) { invocation.console.print(id) }
            return .done
        }
        return try await invocation.await(id, until: goal)
    }
}

extension Invocation {
    fileprivate func letter() throws -> JSONValue {
        var members: [JSONValue.Member] = [.init(key: "recipients", value: JSONValue(parsed.list("to")))]
        func add(_ name: String, _ value: JSONValue?) {
            if let value { members.append(.init(key: name, value: value)) }
        }
        for (flag, name) in [
            ("subject", "subject"), ("template", "template"), ("locale", "locale"), ("reply-to", "reply_to"),
            ("priority", "priority"), ("purpose", "purpose"), ("on-unknown", "on_unknown"), ("sender", "sender"),
            ("tenant", "tenant"), ("id", "id"), ("person", "person"), ("at", "scheduled_at"), ("expires", "expires_at"),
        ] {
            add(name, parsed.string(flag).map(JSONValue.string))
        }
        for (flag, name) in [("text", "body_text"), ("html", "body_html")] {
            add(name, try parsed.string(flag).map { .string(try words(at: $0)) })
        }
        if let data = parsed.string("data") {
            let bytes =
                data == "-" || data.hasPrefix("@")
                ? Array(try words(at: data == "-" ? "-" : String(data.dropFirst())).utf8) : Array(data.utf8)
            do throws(JSONProblem) {
                add("data", try JSONValue.read(bytes))
            } catch {
                throw Failure(.misused, "--data: malformed JSON, \(error.sentence)", hint: "put JSON in single quotes")
            }
        }
        for name in ["cc", "bcc"] where !parsed.list(name).isEmpty { add(name, JSONValue(parsed.list(name))) }
        for (flag, name) in [("header", "headers"), ("tag", "tags")] where !parsed.list(flag).isEmpty {
            add(
                name,
                .object(
                    try parsed.list(flag).map { pair in
                        if flag == "tag", !pair.isEmpty, !pair.contains("=") {
                            return .init(key: pair, value: "true")
                        }
                        guard let sign = pair.firstIndex(of: "="), sign != pair.startIndex else {
                            throw Failure(.misused, "--\(flag) takes NAME=VALUE, not \(Secrets.quoted(pair))")
                        }
                        return .init(
                            key: String(pair[..<sign]), value: .string(String(pair[pair.index(after: sign)...])))
                    }))
        }
        if parsed.isOn("receipt") { add("receipt", true) }
        let files = try parsed.list("attach").map { path -> JSONValue in
            let bytes = try bytes(at: path, most: 30_000_000)
            let name = path.split(separator: "/").last.map(String.init) ?? path
            return [
                "filename": .string(name), "content_type": .string(Self.contentType(of: name)),
                "data": .string(Data(bytes).base64EncodedString()),
            ]
        }
        if !files.isEmpty { add("attachments", .array(files)) }
        return .object(members)
    }

    private func words(at path: String) throws -> String {
        guard let text = String(validating: try bytes(at: path, most: 2_097_152), as: UTF8.self) else {
            throw Failure(.misused, "\(Secrets.quoted(path)) is not UTF-8")
        }
        return text
    }

    private func bytes(at path: String, most: Int) throws -> [UInt8] {
        do throws(FileProblem) {
            return try surroundings.read(path, most)
        } catch {
            throw Failure(.misused, "\(Secrets.quoted(path)): \(error.complaint)")
        }
    }

    private static func contentType(of name: String) -> String {
        switch name.split(separator: ".").last.map({ $0.lowercased() }) ?? "" {
        case "txt", "log": "text/plain"
        case "html", "htm": "text/html"
        case "csv": "text/csv"
        case "ics": "text/calendar"
        case "pdf": "application/pdf"
        case "json": "application/json"
        case "zip": "application/zip"
        case "png": "image/png"
        case "jpg", "jpeg": "image/jpeg"
        case "gif": "image/gif"
        default: "application/octet-stream"
        }
    }

    fileprivate func await(_ id: String, until goal: String) async throws -> ExitCode {
        let deadline = deadline
        let status = try await withSchema { connection -> String in
            var last = ""
            while true {
                last = try await MailAdmin.status(id, on: connection) ?? "gone"
                if MailStatus.ends(last, waitingFor: goal) { return last }
                if let deadline, deadline <= .now { return last }
                try await Task.sleep(for: .milliseconds(200))
            }
        }
        let error = try await withSchema { try await MailAdmin.error(id, on: $0) }
        console.show(["id": .string(id), "status": .string(status), "error": JSONValue(error)]) {
            console.print(id)  // alone, as without --wait
            console.note(status + (error.map { ": \($0)" } ?? ""))
        }
        return MailStatus.exitCode(status, waitingFor: goal)
    }
}

/// What a status means for a caller that waits.
enum MailStatus {
    static let all = [
        "scheduled", "queued", "sending", "unknown", "parked", "accepted", "delayed", "delivered", "bounced",
        "complained", "failed", "suppressed", "expired", "cancelled",
    ]

    static func ends(_ status: String, waitingFor goal: String) -> Bool {
        switch status {
        case "scheduled", "queued", "sending", "unknown": false
        case "accepted", "delayed": goal == "accepted"
        default: true
        }
    }

    static func exitCode(_ status: String, waitingFor goal: String) -> ExitCode {
        guard ends(status, waitingFor: goal) else { return .timedOut }
        switch status {
        case "accepted", "delayed", "delivered", "complained": return .done
        case "suppressed": return .conflict
        default: return .jobDied
        }
    }
}
