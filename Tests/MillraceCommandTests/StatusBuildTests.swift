import FoundationEssentials
import MillraceQueues
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// Which builds of the workers live, in `status`.
@Suite struct StatusBuildTests {
    @Test func `builds are those that live or get new jobs, with their workers and runs`() async throws {
        try await withDatabase { database in
            let url = database.url
            let connection = try await database.connect()
            func builds() async throws -> [String] {
                let json = try JSONValue.read(
                    await millrace("status", "--json", "--database-url", url).output)
                return (json["builds"]?.items ?? []).map(\.compact)
            }
            #expect(try await builds() == [])
            try await connection.run(
                """
                select millrace.register_kinds('{a.b}', '{null}');
                select millrace.session_open(1, 'one', 'h', 1, '1.0+aaaa', null, array(select id from millrace.kind), 4, false),
                       millrace.session_open(2, 'two', 'h', 2, '1.0+aaaa', null, array(select id from millrace.kind), 4, false);
                select millrace.beat(1, 'working', 3, 0, 0), millrace.beat(2, 'working', 1, 0, 0)
                """)
            #expect(
                try await builds() == [
                    #"{"build":"aaaa","workers":2,"running":4,"promoted":false,"state":null,"percent":null,"stranded":false}"#
                ])
            #expect(await !millrace("status", "--database-url", url).output.contains("builds:"))
            try await connection.run(
                """
                select millrace.session_open(3, 'three', 'h', 3, '1.0+7f3a', null, array(select id from millrace.kind), 4, false, null, '7f3a'),
                       millrace.session_open(4, 'four', 'h', 4, '1.0+81c2', null, array(select id from millrace.kind), 4, false, null, '81c2');
                select millrace.versions_promote('7f3a'), millrace.versions_promote('81c2', 10), millrace.beat(3, 'working', 9, 0, 0);
                select millrace.session_close(4)
                """)
            let found = try await builds()
            #expect(found.count == 3, "\(found)")
            #expect(
                found.first?.hasPrefix(#"{"build":"7f3a","workers":1,"running":9,"promoted":true,"state":"promoted""#)
                    == true)
            // It gets new jobs, and no worker takes them.
            #expect(
                found.last
                    == #"{"build":"81c2","workers":0,"running":0,"promoted":false,"state":"canary","percent":10,"stranded":true}"#
            )
            let page = await millrace("status", "--database-url", url).output
            #expect(
                page.contains("builds: 7f3a (promoted): 1 worker, 9 running; aaaa: 2 workers, 4 running;"), "\(page)")
            #expect(page.contains("81c2 (canary 10 %): 0 workers, 0 running"), "\(page)")
            await connection.close()
        }
    }
}
