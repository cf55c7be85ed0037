import MillraceQueues
import Postgres
import TestSupport
import Testing

/// What the core calls of the rooms: `millrace.hook`, as sql/core/base/hooks.sql explains it.
@Suite struct HookTests {
    private static let troubles = """
        select concat_ws(' ', event, room, function, times, sentence) from millrace.hook_troubles()
        """

    /// Makes a hook fail with this error, or go well.
    private static func replace(
        _ function: String, failing code: String?, on connection: Connection
    ) async throws {
        let does = code.map { "raise exception 'planted' using errcode = '\($0)'" } ?? "return 0"
        try await connection.run(
            """
            create or replace function millrace.\(function)(most int default 5000) returns bigint language plpgsql as $$
            begin
                \(does);
            end $$
            """)
    }

    @Test(.enabled(if: Template.hasRooms)) func `a hook that fails is named and stops no other`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.family_create('f', 'UTC');
                insert into millrace.family_invitation (family, person, role, invited_by, invited_at, expires_at)
                values ('f', 'ada', 'teen', 'eve', now() - interval '20 days', now() - interval '6 days')
                """)
            // The invitations are dropped behind it.
            try await Self.replace("documents_expire", failing: "22012", on: connection)
            #expect(try await connection.bool("select ran from millrace.maintain()"))
            #expect(try await connection.int("select count(*) from millrace.family_invitation") == 0)
            #expect(
                try await connection.column(Self.troubles) == ["expire documents documents_expire 1 planted"])
            try await connection.run("select millrace.maintain()")
            #expect(
                try await connection.column(Self.troubles) == ["expire documents documents_expire 2 planted"])
            try await Self.replace("documents_expire", failing: nil, on: connection)
            try await connection.run("select millrace.maintain()")
            #expect(try await connection.column(Self.troubles) == [])
            #expect(try await connection.int("select count(*) from millrace.hook_failure") == 0)
        }
    }

    @Test(.enabled(if: Template.hasRooms)) func `a hook that waits for a lock in vain is named from the fifth time on`()
        async throws
    {
        try await withConnection { connection in
            try await Self.replace("chat_expire", failing: "55P03", on: connection)
            for _ in 1...4 { try await connection.run("select millrace.maintain()") }
            #expect(try await connection.column(Self.troubles) == [])
            try await connection.run("select millrace.maintain()")
            #expect(try await connection.column(Self.troubles) == ["expire chat chat_expire 5 planted"])
        }
    }

    @Test(.enabled(if: Template.hasRooms)) func `where lanes of a room cannot be counted, those of the others are`()
        async throws
    {
        try await withConnection { connection in
            let lanes = "select distinct room from millrace.room_lanes() order by 1"
            #expect(try await connection.column(lanes) == ["check-ins", "notices", "webhooks"])
            try await connection.run("alter table millrace.webhook_delivery rename to moved_away")
            #expect(try await connection.column(lanes) == ["check-ins", "notices"])
            #expect(try await connection.column("select function from millrace.hook_troubles()") == ["webhook_lanes"])
            // A reader that may not write is answered as well.
            try await connection.run("begin read only")
            #expect(try await connection.column(lanes) == ["check-ins", "notices"])
            try await connection.run("rollback")
            try await connection.run("alter table millrace.moved_away rename to webhook_delivery")
            #expect(try await connection.column(lanes) == ["check-ins", "notices", "webhooks"])
            #expect(try await connection.column("select function from millrace.hook_troubles()") == [])
        }
    }

    @Test(.enabled(if: Template.hasRooms))
    func `a person is erased wholly or not at all, and the hook that failed is named`() async throws {
        try await withConnection { connection in
            try await connection.run(
                "insert into millrace.profile (person, display_name, changed_at) values ('ada', 'Ada', now())")
            try await connection.run(
                """
                create or replace function millrace.subscriptions_erase_person(person text) returns bigint
                language plpgsql as $$ begin raise exception 'planted' using errcode = '55000', hint = 'wait'; end $$
                """)
            let refusal = try await connection.refusal(of: "select millrace.person_erase('ada', 'ada')")
            #expect(refusal?.sqlState == "55000" && refusal?.hint == "wait", "\(String(describing: refusal))")
            #expect(
                refusal?.message
                    == "nothing of this person was erased, because subscriptions_erase_person failed: planted")
            #expect(try await connection.value("select display_name from millrace.profile") == "Ada")
            _ = try await Migrator.ofAllRooms().migrate(on: connection)
            #expect(try await connection.value("select millrace.person_erase('ada', 'ada') ->> 'notices'") == "1")
            #expect(try await connection.int("select count(*) from millrace.profile") == 0)
        }
    }

    @Test func `a room of one's own is called, and no more once its hooks are gone`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                create table public.called (at timestamptz default now());
                create function millrace.own_expire() returns void language sql as
                    $$ insert into public.called default values $$;
                select millrace.hooks_are('own', '[{"event": "expire", "function": "own_expire", "position": 5}]')
                """)
            try await connection.run("select millrace.maintain()")
            #expect(try await connection.int("select count(*) from public.called") == 1)
            try await connection.run("select millrace.hooks_are('own', '[]'), millrace.maintain()")
            #expect(try await connection.int("select count(*) from public.called") == 1)
            let refusal = try await connection.refusal(
                of: #"select millrace.hooks_are('own', '[{"event": "expire", "function": "x", "position": 1}]')"#)
            #expect(refusal?.message.contains("there is no such function") == true)
            #expect(
                try await connection.refusal(
                    of: "insert into millrace.hook values ('expire', 'own', 'now(); drop table x', 'own', 1)")?.sqlState
                    == "23514")
        }
    }

    @Test(.enabled(if: Template.hasRooms))
    func `a migration forgets hooks whose functions are gone, and keeps every other`() async throws {
        try await withConnection { connection in
            let all = "select event || room || function || name || position from millrace.hook order by 1"
            let before = try await connection.column(all)
            #expect(before.count > 40)
            try await connection.run(
                """
                insert into millrace.hook values ('expire', 'left', 'left_expire', 'left', 1);
                update millrace.hook set position = 999 where function = 'mail_why_queue';
                delete from millrace.hook where function = 'chat_expire'
                """)
            _ = try await Migrator.ofAllRooms().migrate(on: connection)
            #expect(try await connection.column(all) == before)
        }
    }

    @Test(.enabled(if: Template.hasRooms)) func `each room says how it stands, and one that fails hides no other`()
        async throws
    {
        try await withConnection { connection in
            let rooms = "select room from millrace.room_states() order by room collate \"C\""
            let all = try await connection.column(rooms)
            #expect(
                all == ["ai", "checkins", "documents", "mail", "notices", "quests", "subscriptions", "webhooks"])
            try await connection.run("select millrace.family_create('f', 'UTC'); analyze millrace.quest_family")
            #expect(
                try await connection.value(
                    "select state ->> 'families' from millrace.room_states() where room = 'quests'")
                    == "1")
            try await connection.run(
                """
                create or replace function millrace.mail_status_part() returns jsonb language plpgsql as $$
                begin
                    raise exception 'planted';
                end $$
                """)
            #expect(try await connection.column(rooms) == all.filter { $0 != "mail" })
            #expect(try await connection.column(Self.troubles) == ["state mail mail_status_part 1 planted"])
            // A room that is gone says nothing, and its jobs are nobody's.
            try await connection.run("select millrace.hooks_are('documents', '[]')")
            #expect(try await connection.column(rooms) == all.filter { $0 != "mail" && $0 != "documents" })
        }
    }

    @Test(.enabled(if: Template.hasRooms))
    func `jobs of a room are known by the kinds that it names, and keep what they name`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                create or replace function millrace.quest_kinds() returns setof text language sql as $$
                    values ('quests.rollover'), ('planted.%')
                $$;
                create or replace function millrace.mail_keeps() returns setof text language sql as $$ values ('letter') $$;
                select millrace.enqueue('planted.one', '{"letter": 1}', tenant => 'person:ada'),
                       millrace.enqueue('planted.one', '{"other": 1}', tenant => 'person:ada')
                """)
            #expect(try await connection.column("select room || waiting from millrace.rooms()") == ["quests2"])
            try await connection.run(
                """
                select millrace.cancel(j.id) from millrace.job j where j.tenant = 'person:ada';
                select millrace.person_erase('ada', 'ada')
                """)
            #expect(
                try await connection.column(
                    "select args::text from millrace.job where tenant like 'erased:%' order by args::text collate \"C\""
                )
                    == [#"{"letter": 1}"#, "{}"])
            // What keeps nothing back could do harm, so the erasure ends with it.
            try await connection.run(
                """
                create or replace function millrace.mail_keeps() returns setof text language plpgsql as $$
                begin
                    raise exception 'planted';
                end $$;
                select millrace.enqueue('planted.one', '{"letter": 2}', tenant => 'person:ben')
                """)
            let refusal = try await connection.refusal(of: "select millrace.person_erase('ben', 'ben')")
            #expect(refusal?.message.contains("planted") == true)
        }
    }

    @Test func `only the owner writes hooks`() async throws {
        try await RoleTests.withRoles { database, _, roles in
            for role in [roles.client, roles.worker, roles.admin] {
                let connection = try await database.connect(as: role)
                for statement in [
                    "insert into millrace.hook values ('expire', 'x', 'now', 'x', 1)", "delete from millrace.hook",
                    "update millrace.hook set function = 'now'", "select from millrace.hook",
                    "delete from millrace.hook_failure", "select millrace.hooks_are('x', '[]')",
                    "select millrace.hooks_call('expire')", "select millrace.hooks_must('answered', '{}')",
                    "select millrace.hooks_ask('why_queue', '{}')", "select millrace.hook_went('expire', 'x')",
                    "select millrace.hooks_tidy()",
                ] {
                    #expect(
                        try await connection.refusal(of: statement)?.sqlState == "42501", "\(role): \(statement)")
                }
                await connection.close()
            }
        }
    }
}
