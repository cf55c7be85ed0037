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
                create view reports.late as select * from reports.waiting;
                create table reports.call (id bigint primary key, who millrace.caller_name, job bigint, at timestamptz default millrace.now());
                create table reports.queue (id int references millrace.queue(id));
                create view reports.calls as select id, job from reports.call;
                create function reports.stamp() returns trigger language plpgsql as $$ begin return new; end $$;
                create trigger stamp before insert on millrace.job_field for each row execute function reports.stamp();
                create policy own on reports.call using (job > 0 and millrace.is_staff(current_user));
                select millrace.session_open(1, 'w', 'host', 1, '0', null, '{}', 4, false)
                """)
            let look = await millrace("uninstall", "--database-url", url)
            #expect(look.code == .done && look.output.hasPrefix("would drop the schema millrace of "))
            let named = look.output.split(separator: "\n").filter { $0.hasSuffix(", which depends on it") }
            #expect(
                Set(named.map { $0.dropFirst("would drop the ".count).dropLast(", which depends on it".count) }) == [
                    "view reports.waiting", "view reports.late", "column who of table reports.call",
                    "default value for column at of table reports.call", "policy own on table reports.call",
                    "constraint queue_id_fkey on table reports.queue",
                ], "\(look.output)")
            #expect(look.output.contains("worker w on host is running: stop it first"))
            let refused = await millrace("uninstall", "--yes", "--database-url", url)
            #expect(refused.code == .conflict, "\(refused.errors)")
            #expect(await millrace("queues", "list", "--database-url", url).code == .done)
            try await database.change("select millrace.session_close(1)")
            let done = await millrace("uninstall", "--yes", "--database-url", url)
            try await database.change("select id, job from reports.calls; table reports.queue")  // these stay
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
