import FoundationEssentials

/// The fake's control address, for a test in another process:
/// GET and PATCH /script · GET /figures · GET /events · GET /accepted?from=<n> (a message a line).
package final class ResendControl: Sendable {
    package let port: Int
    private let server: RawServer

    package init(_ fake: FakeResend, port: Int = 0) throws {
        server = try RawServer(port: port) { connection in
            while let head = connection.readHead() {
                guard let request = FakeRequest(head), let body = connection.read(exactly: request.length) else {
                    return
                }
                let (status, answer) = Self.answer(request, body, fake)
                connection.answer(answer, status: status)
            }
        }
        self.port = server.port
    }

    package func stop() { server.stop() }

    private static func answer(_ request: FakeRequest, _ body: [UInt8], _ fake: FakeResend) -> (String, String) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        func text(_ value: some Encodable) -> String {
            (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) } ?? "null"
        }
        let parts = request.path.split(separator: "?", maxSplits: 1)
        switch (request.method, parts.first ?? "") {
        case ("GET", "/script"): return ("200 OK", text(fake.script))
        case ("PATCH", "/script"):
            do {
                try merge(body, into: fake)
                return ("200 OK", text(fake.script))
            } catch {
                return ("422 Unprocessable Entity", "\(error)")
            }
        case ("GET", "/figures"): return ("200 OK", text(fake.figures))
        case ("GET", "/events"): return ("200 OK", text(fake.events))
        case ("GET", "/accepted"):
            let from = parts.count > 1 && parts[1].hasPrefix("from=") ? Int(parts[1].dropFirst(5)) ?? 0 : 0
            return ("200 OK", fake.accepted.dropFirst(from).map { text($0) + "\n" }.joined())
        default: return ("404 Not Found", "")
        }
    }

    /// Changes only the named fields; an unknown name is refused.
    private static func merge(_ body: [UInt8], into fake: FakeResend) throws {
        struct Unknown: Error { var name: String }
        var whole = try JSONDecoder().decode([String: Loose].self, from: JSONEncoder().encode(fake.script))
        for (name, value) in try JSONDecoder().decode([String: Loose].self, from: Data(body)) {
            guard whole[name] != nil else { throw Unknown(name: name) }
            whole[name] = value
        }
        let script = try JSONDecoder().decode(ResendScript.self, from: JSONEncoder().encode(whole))
        try fake.change { $0 = script }
    }

    private enum Loose: Codable {
        case number(Double), text(String), texts([String])

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let number = try? value.decode(Double.self) {
                self = .number(number)
            } else if let text = try? value.decode(String.self) {
                self = .text(text)
            } else {
                self = .texts(try value.decode([String].self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var value = encoder.singleValueContainer()
            switch self {
            case .number(let number): try value.encode(number)
            case .text(let text): try value.encode(text)
            case .texts(let texts): try value.encode(texts)
            }
        }
    }
}
