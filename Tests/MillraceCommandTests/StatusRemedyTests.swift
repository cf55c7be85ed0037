import Composition
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// No alarm leaves its reader without a command.
@Suite struct StatusRemedyTests {
    @Test(arguments: Alarm.all(with: Rooms.all))
    func `what looks at an alarm is a command that exists`(alarm: Alarm) throws {
        let words = alarm.look.split(separator: " ").map(String.init)
        guard words[0] == "millrace" else {
            #expect(["systemctl", "psql"].contains(words[0]))
            return
        }
        #expect(words != ["millrace", "status"] || alarm == .condition, "who reads it has asked status already")
        guard case .run = Parser(tree: Verbs.tree, environment: [:]).parse(Array(words.dropFirst())) else {
            Issue.record("\(alarm.look) is not understood")
            return
        }
    }

    @Test func `jobs that died are told with the cause of the latest, and its command`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.session_open(1, 'w', 'host', 1, '0', null, '{}', 4, false);
                select millrace.enqueue('poison');
                insert into millrace.history (id, session, number, started, finished, kind, queue, ms, class, outcome, attempt, crashes, error)
                select j.id, 1, 9, millrace.now(), millrace.now(), j.kind, j.queue, 1, 1, 3, 1, 0, 'upstream 502' from millrace.job j;
                delete from millrace.ready
                """)
            let report = try await StatusReport.read(on: connection, cap: 10, patience: .seconds(30))
            let found = try #require(report.findings.first { $0.alarm == .deadJobs })
            let job = try #require(report.latestDead?.job)
            #expect(
                found.sentence
                    == "1 job died in the last hour; the latest, job \(job): it died at attempt 1: upstream #")
            #expect(found.command == "millrace jobs retry \(job)")
        }
    }

    @Test(arguments: [
        "FATAL:  sorry, too many clients already",
        "FATAL:  remaining connection slots are reserved for non-replication superuser connections",
        #"FATAL:  too many connections for role "shop""#,
    ])
    func `where no connection is left, that is said with a command, and not that the database is unreachable`(
        reason: String
    ) {
        let failure = DatabaseFailure(.unreachable(reason: reason))
        #expect(failure.sentence == "the database has no connection left" && failure.exitCode == .unreachable)
        #expect(failure.hint?.hasSuffix(PostgresError.lookAtConnections) == true)
    }
}
