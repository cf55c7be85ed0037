import Clusters
import Foundation
import Postgres
import TestSupport
import Testing

/// Somebody who tries what the pages show, on a database that `millrace migrate` has made, with the roles that it prints.
struct Reader {
    static let names = ["owner", "admin", "backend", "client", "worker"]

    private let cluster: Cluster
    private let folder: URL

    init(_ cluster: Cluster) async throws {
        self.cluster = cluster
        folder = FileManager.default.temporaryDirectory.appending(path: "millrace-reader-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder.appending(path: "bin"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            at: folder.appending(path: "bin/millrace"), withDestinationURL: MillraceProcess.executable)
    }

    /// The logins of an app: its server, the one of its gateway, which takes on `authenticated`, and the one of who is on call.
    private static let logins = """
        create role app_server login in role millrace_client;
        create role authenticated nologin in role millrace_client;
        create role authenticator login noinherit in role authenticated;
        create role operator login in role millrace_admin;
        create role worker login in role millrace_worker;
        select millrace.grant_enqueue('millrace_client', '*');
        select millrace.grant_backend('app_server'), millrace.trust_claims('authenticator');
        create table public.orders (id bigint primary key);
        create table public.payment (id bigint primary key);
        grant all on public.orders, public.payment to public;
        """

    /// The pages speak of job 42 and its neighbours.
    private static let jobs =
        "select millrace.enqueue('practice.nothing', run_at => now() + interval '1 day') from generate_series(1, 50);"

    /// And of these files.
    private static let files = [
        "jobs.jsonl": "{\"kind\": \"practice.nothing\"}\n{\"kind\": \"practice.nothing\"}\n",
        "card.json": "{\"card\": \"4242\"}\n",
        "page.mustache": "Hello {{name}}{{> foot}}\n",
        "page.json": "{\"name\": \"Ada\"}\n",
        "parts/foot.mustache": ".\n",
    ]

    /// A page of PDF with a sentence on it.
    private static let document: String = {
        let words = "BT /F1 24 Tf 72 720 Td (The mountain railway climbs slowly.) Tj ET"
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
            "<< /Length \(words.utf8.count) >>\nstream\n\(words)\nendstream",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        ]
        var text = "%PDF-1.4\n"
        var places: [Int] = []
        for (index, object) in objects.enumerated() {
            places.append(text.utf8.count)
            text += "\(index + 1) 0 obj\n\(object)\nendobj\n"
        }
        let start = text.utf8.count
        text += "xref\n0 \(objects.count + 1)\n0000000000 65535 f \n"
        for place in places {
            let digits = String(place)
            text += String(repeating: "0", count: 10 - digits.count) + digits + " 00000 n \n"
        }
        return text + "trailer << /Size \(objects.count + 1) /Root 1 0 R >>\nstartxref\n\(start)\n%%EOF\n"
    }()

    /// A picture of one pixel.
    private static let picture = Data(
        base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
            + "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

    var settings: [String: String] {
        [
            "PATH": "\(folder.path)/bin:\(ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")",
            "MILLRACE_SECRET": "a secret that only this reader has",
            "MILLRACE_MAIL_OUTBOX": folder.appending(path: "outbox").path,
            "MILLRACE_PUBLIC_URL": "https://app.example",
            "MILLRACE_ENCRYPTION_KEY": "y2029:\(Data(repeating: 7, count: 32).base64EncodedString())",
            "NO_COLOR": "1",
        ]
    }

    func url(of role: String) -> String {
        let login =
            switch role {
            case "admin": "operator"
            case "backend": "app_server"
            case "client": "authenticator"
            case "worker": "worker"
            default: "millrace"
            }
        return cluster.url().replacing("//millrace@", with: "//\(login)@")
    }

    func prepare() async throws {
        let prints = try await shell(
            "millrace migrate --print-roles | psql -qv ON_ERROR_STOP=1 \"$DATABASE_URL\" && millrace migrate --rooms all"
        )
        try #require(prints.status == 0, "\(prints.text)")
        for (text, role) in [(Self.logins, "owner"), (Self.jobs, "backend")] {
            let made = try await psql(text, as: [role])
            try #require(made.status == 0, "\(made.text)")
        }
        try Self.document.write(to: folder.appending(path: "scan.pdf"), atomically: true, encoding: .utf8)
        try Self.picture?.write(to: folder.appending(path: "photo.png"))
        for (name, text) in Self.files {
            let file = folder.appending(path: name)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
    }

    func worker(_ number: Int) async throws -> MillraceProcess {
        try await MillraceProcess.worker(
            "reader-\(number)", database: url(of: "owner"), environment: settings)
    }

    func run(sql snippet: Snippet) async throws {
        let outcome = try await psql(snippet.text, as: snippet.role ?? ["owner"])
        if let refusal = snippet.refusal {
            #expect(outcome.text.contains("ERROR:  \(refusal): "), "\(snippet) is not refused: \(outcome.text)")
        } else {
            #expect(outcome.status == 0, "\(snippet) says: \(outcome.text)")
        }
    }

    /// What watches goes on until it is interrupted. What measures takes minutes, and has tests of its own.
    func run(commands snippet: Snippet) async throws {
        let script = snippet.text.replacing("\\\n", with: " ").split(separator: "\n").filter { line in
            !["#", "millrace load", "deploy/"].contains(where: line.hasPrefix)
        }.map { line in
            let watches = ["--watch", "--follow", "millrace worker", "jobs watch"].contains { line.contains($0) }
            return watches
                ? "timeout --signal INT 3 \(line.split(separator: " #")[0]) || [ $? = 124 ] || [ $? = 130 ]"
                : String(line)
        }
        let outcome = try await shell(
            (["set -e", "trap 'echo \"failed: $BASH_COMMAND\"' ERR"] + script).joined(separator: "\n"))
        #expect(outcome.status == 0, "\(snippet) ends with \(outcome.status): \(outcome.text.suffix(1500))")
    }

    private func shell(_ line: String) async throws -> Program.Outcome {
        try await Program.run(
            "timeout", ["200", "bash", "-o", "pipefail", "-c", line], errors: true,
            environment: environment(as: ["owner"]), in: folder.path)
    }

    private func psql(_ text: String, as role: [String]) async throws -> Program.Outcome {
        try await Program.run(
            "psql", ["-qXv", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", "-f", "-", url(of: role[0])],
            input: Data(text.utf8), errors: true,
            environment: environment(as: role), in: folder.path)
    }

    private func environment(as role: [String]) -> [String: String] {
        var environment = settings
        environment["DATABASE_URL"] = url(of: role[0])
        environment["MILLRACE_LISTEN"] = "off"
        if role.count == 2 {
            environment["PGOPTIONS"] = "-c role=authenticated -c request.jwt.claims={\"sub\":\"\(role[1])\"}"
        }
        return environment
    }
}
