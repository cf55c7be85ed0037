import TestSupport
import Testing

@testable import MillraceCommand

@Suite struct UninstallTests {
    @Test func `uninstall says what would go, refuses while a worker lives, and then drops it all`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await database.change(
                """
                create schema reports;
                create view reports.waiting as select queue, ready from millrace.queues;
                select millrace.session_open(1, 'w', 'host', 1, '0', null, '{}', 4, false)
                """)
            let look = await millrace("uninstall", "--database-url", url)
            #expect(look.code == .done && look.output.hasPrefix("would drop the schema millrace of "))
            #expect(look.output.contains("would drop the view reports.waiting, which leans on it"))
            #expect(look.output.contains("worker w on host lives: stop it first"))
            let refused = await millrace("uninstall", "--yes", "--database-url", url)
            #expect(refused.code == .conflict, "\(refused.errors)")
            #expect(await millrace("queues", "list", "--database-url", url).code == .done)
            try await database.change("select millrace.session_close(1)")
            let done = await millrace("uninstall", "--yes", "--database-url", url)
            #expect(done.code == .done && done.output.hasPrefix("dropped the schema millrace of "), "\(done.errors)")
            let again = await millrace("uninstall", "--yes", "--database-url", url)
            #expect(again.code == .done && again.output == "this database has no schema millrace\n")
            #expect(await millrace("migrate", "--database-url", url).code == .done)
        }
    }

    @Test func `a rollback without a promotion says what could be done`() async throws {
        try await withDatabase { database in
            let plain = await millrace("versions", "rollback", "--database-url", database.url)
            #expect(plain.code == .conflict, "\(plain.code)")
            #expect(plain.errors.contains("start the workers of the earlier program again"))
            try await database.change(
                """
                select millrace.register_kinds('{a}', '{null}');
                select millrace.session_open(1, 'w', 'h', 1, '1+7f3a', null, array(select id from millrace.kind), 1, false, null, '7f3a')
                """)
            let pinned = await millrace("versions", "rollback", "--database-url", database.url)
            #expect(pinned.errors.contains("millrace versions promote <build>, one of 7f3a"), "\(pinned.errors)")
        }
    }
}
