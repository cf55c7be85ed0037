import Foundation
import TestSupport
import Testing

@testable import MillraceCommand

/// `deploy/guides/json.md` says which fields a verb prints; programs rely on it.
@Suite struct JSONContractTests {
    struct Line {
        let verb: String
        /// Each field, and the fields of its entries where they are listed.
        var fields: [String: Set<String>] = [:]
    }

    static func lines() throws -> [Line] {
        let page = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../deploy/guides/json.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let table = text[(text.range(of: "## Fields")?.upperBound ?? text.startIndex)...]
        return table.split(separator: "\n").filter { $0.hasPrefix("| ") && !$0.hasPrefix("| verb") }.map { row in
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            var line = Line(verb: cells[0])
            let halves = cells[1].split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            var own = halves[0].split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            if halves.count > 1 {
                let entries = halves[1].split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
                line.fields[own.removeLast()] = Set(entries)
            }
            for field in own { line.fields[field] = [] }
            return line
        }
    }

    private static func keys(_ value: JSONValue) -> Set<String> {
        guard case .object(let members) = value else { return [] }
        return Set(members.map(\.key))
    }

    @Test func `each verb on the page prints the fields that stand there, and no others`() async throws {
        let lines = try Self.lines()
        #expect(lines.count >= 20)
        try await withDatabase { database in
            try await database.change(
                """
                select millrace.enqueue('mail.send', queue => 'mail');
                delete from millrace.ready;
                insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
                select id, 0, id, now(), now(), kind, queue, 1, 3, 1, 0, 'refused' from millrace.job;
                select millrace.pause('empty');
                select millrace.provider_force('resend', 'observe', 'test');
                select millrace.flag_set('new-sender', 5);
                select millrace.schedule_set('nightly', '0 2 * * *', 'mail.send')
                """)
            for line in lines {
                let capture = Capture()
                let words = line.verb.split(separator: " ").map(String.init)
                let code = await Application.run(
                    arguments: words + ["--json", "--yes", "--database-url", database.url], surroundings: .fake(),
                    console: capture.console)
                #expect(code == .done, "\(line.verb): \(capture.errors)")
                let value = try JSONValue.read(capture.output)
                #expect(value["version"]?.integer == 1, "\(line.verb)")
                #expect(Self.keys(value).subtracting(["version"]) == Set(line.fields.keys), "\(line.verb)")
                for (field, entries) in line.fields where !entries.isEmpty {
                    guard case .array(let items)? = value[field], let first = items.first else {
                        Issue.record("\(line.verb): \(field) has no entry")
                        continue
                    }
                    #expect(Self.keys(first) == entries, "\(line.verb): \(field)")
                }
            }
        }
    }
}
