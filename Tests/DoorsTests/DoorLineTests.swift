import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// The lines beside the functions, which say who may call them: see sql/core/base/doors.sql.
@Suite struct DoorLineTests {
    /// What a role may execute, or read, by its own name.
    private static func granted(_ role: String, views: Bool, _ owner: Connection) async throws -> Set<String> {
        try await Set(
            owner.column(
                views
                    ? """
                    select distinct c.relname from pg_class c cross join lateral aclexplode(c.relacl) a
                     where c.relnamespace = 'millrace'::regnamespace and a.grantee = '\(role)'::regrole
                    """
                    : """
                    select distinct p.proname from pg_proc p cross join lateral aclexplode(p.proacl) a
                     where p.pronamespace = 'millrace'::regnamespace and a.grantee = '\(role)'::regrole
                    """))
    }

    private static func roles(_ world: DoorWorld) -> [(role: String, name: String)] {
        let names = world.names
        return [
            ("client", names.client), ("worker", names.worker), ("admin", names.admin), ("viewer", names.viewer),
            ("operator", names.operator), ("gateway", names.gateway),
        ]
    }

    @Test func `each role is granted what the lines say, and nothing else`() async throws {
        try await DoorWorld.with { world in
            let doors = try await DoorTable.doors(on: world.owner)
            #expect(doors.count > 500)
            for (role, name) in Self.roles(world) {
                for views in [false, true] {
                    let said = Set(doors.filter { $0.isView == views && $0.roles.contains(role) }.map(\.name))
                    let granted = try await Self.granted(name, views: views, world.owner)
                    #expect(granted == said, "\(role): \(granted.symmetricDifference(said).sorted())")
                }
            }
            // An admin may use what a worker may, and an operator what a viewer may.
            #expect(doors.allSatisfy { !$0.roles.contains("worker") || $0.roles.contains("admin") })
            #expect(doors.allSatisfy { !$0.roles.contains("viewer") || $0.roles.contains("operator") })
        }
    }

    /// Said here a second time, because a line can open too much.
    private static let closed: [String: String] = [
        "client": """
        claim finish complete enqueue_bulk job_list jobs_read jobs_find audit_list blob blob_open blob_put blob_allow mail_take mail_list \
        mail_suppress check_in_confirm check_in_consent check_in_resolve notice_cancel subscription_stripe quota_set \
        right_staff right_admin right_view right_operate right_claims grant_backend trust_claims grant_enqueue operation_start \
        webhook_secrets link_key_set chat_remove gateway_doors gateway_take sync_device_claims template_publish
        """,
        "worker": """
        grant_enqueue grant_publish grant_backend trust_claims job_delete audit_list audit_keep pause queue_remove sealed_page reseal \
        webhook_add webhook_rotate mail_erase mail_unsuppress quota_set template_publish right_admin right_operate right_claims \
        sync_push gateway_begin operation_start retention_set ai_purpose_put subscription_plan_set
        """,
        "viewer": """
        right_staff job job_list logs steps cancel retry result published document_contents blob_open blob mail_story notice_story \
        enqueue pause operation_start approval_answer flag_set watch_contacts check_in_show
        """,
        "operator": """
        right_admin right_claims enqueue job_delete grant_enqueue grant_backend trust_claims mail_erase sealed_page reseal webhook_secrets \
        webhook_add claim audit_keep ai_purpose_put quota_set template_publish link_key_set step_set
        """,
        "gateway": """
        right_staff right_admin right_backend enqueue job job_list claim mail_take link_key_set subscription_stripe check_in_show \
        webhook_secrets document_contents audit_list trust_claims
        """,
        "admin":
            "right_claims gateway_take sync_push feed_next door_is door_close doors_tidy hooks_are is_staff caller_tenant",
    ]

    @Test func `what must stay closed to a role is closed, whatever its line says`() async throws {
        try await DoorWorld.with { world in
            for (role, name) in Self.roles(world) {
                let closed = Set((Self.closed[role] ?? "").split(separator: " ").map(String.init))
                #expect(!closed.isEmpty)
                let open = try await Self.granted(name, views: false, world.owner).intersection(closed)
                #expect(open.isEmpty, "\(role): \(open.sorted())")
            }
        }
    }

    /// Functions that take a caller and run with the owner's rights, and that no role is to call. Each needs a reason.
    private static let doorless: Set<String> = []

    @Test func `a function without a line is the owner's, and one that is made for callers has a line`() async throws {
        try await DoorWorld.with { world in
            let unlined =
                "p.pronamespace = 'millrace'::regnamespace and not exists (select from millrace.door d where d.name = p.proname)"
            let others = try await world.owner.column(
                """
                select p.proname || ' ' || a.grantee::regrole
                  from pg_proc p cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                 where \(unlined) and a.grantee <> p.proowner
                """)
            #expect(others == ["right_backend \(world.backend)", "right_backend \(world.service)"])
            let callers = try await world.owner.column(
                "select p.proname from pg_proc p where \(unlined) and p.prosecdef and 'caller' = any (p.proargnames)")
            #expect(Set(callers) == Self.doorless)
            // Apps leave the caller out, so it has a default.
            let demanding = try await world.owner.column(
                """
                select p.proname from pg_proc p join millrace.door d on d.name = p.proname
                 where p.pronamespace = 'millrace'::regnamespace and d.for_apps
                   and array_position(p.proargnames, 'caller') <= p.pronargs - p.pronargdefaults
                """)
            #expect(demanding.isEmpty)
        }
    }

    /// 1. Lines open functions and views. 2. An admin grants them to another role by hand. 3. The next program has no such lines.
    @Test func `a door that is not said again is closed, and a right that was given by hand stays`() async throws {
        try await DoorWorld.with { world in
            let (names, owner) = (world.names, world.owner)
            try await owner.run(
                """
                select millrace.door_is('queue', 'job_lives', 'worker', 'staff'), millrace.door_is('queue', 'claim', 'worker, viewer', 'staff'),
                       millrace.view_is('queue', 'unique_key', 'viewer'), millrace.door_is('left', 'left_over', 'client', 'open', 'Is not there.');
                grant execute on function millrace.job_lives to \(names.worker), \(world.other);
                grant execute on function millrace.claim to \(names.viewer), \(names.operator), \(world.other);
                grant select on millrace.unique_key to \(names.viewer), \(world.other)
                """)
            let rights = """
                select p.proname || ' ' || a.grantee::regrole from pg_proc p cross join lateral aclexplode(p.proacl) a
                 where p.pronamespace = 'millrace'::regnamespace and p.proname in ('job_lives', 'claim') and a.grantee <> p.proowner
                union all
                select c.relname || ' ' || a.grantee::regrole from pg_class c cross join lateral aclexplode(c.relacl) a
                 where c.oid = 'millrace.unique_key'::regclass and a.grantee <> c.relowner
                """
            #expect(try await owner.column(rights).count == 9)
            _ = try await names.migrator().migrate(on: owner)
            #expect(
                try await Set(owner.column(rights)) == [
                    "job_lives \(world.other)", "claim \(world.other)", "unique_key \(world.other)",
                    "claim \(names.worker)", "claim \(names.admin)",
                ])
            #expect(
                try await owner.column(
                    "select roles from millrace.door where name in ('job_lives', 'claim', 'left_over')")
                    == ["{worker,admin}"])
        }
    }

    @Test func `a line that names no function, no role or no rule fails, and says what is wrong`() async throws {
        try await withConnection { owner in
            for (line, sentence) in [
                (
                    "'mail', 'mail_sendd', 'client', 'granted', 'Sends a mail.'",
                    "the room mail says who may use the function mail_sendd, and there is none in the schema"
                ),
                (
                    "'mail', 'mail_send', 'clients, worker', 'granted', 'Sends a mail.'",
                    "the room mail says that clients, worker may use mail_send; the roles are client, worker, admin, viewer, operator, gateway, separated by a comma"
                ),
                ("'mail', 'mail_send', 'client', 'guessed', 'Sends a mail.'", "a_door_has_a_rule"),
                ("'mail', 'mail_send', 'client', 'granted'", "a_door_of_apps_says_what_it_does"),
                (
                    "'mail', 'mail_take', 'worker', 'staff', 'Takes mails.', for_apps => true",
                    "a_door_of_apps_is_for_clients"
                ),
            ] {
                let refusal = try await owner.refusal(
                    of: "select millrace.door_is(\(line)); select millrace.doors_tidy()")
                #expect(
                    refusal?.message.contains(sentence) == true, "\(line): \(refusal?.message ?? "it went through")")
            }
        }
    }

    @Test func `nobody but the owner writes doors`() async throws {
        try await DoorWorld.with { world in
            for role in DoorTable.roles where role != "owner" {
                let caller = try await world.caller(role).connection
                for statement in [
                    "insert into millrace.door (name) values ('x')", "delete from millrace.door",
                    "update millrace.door set roles = '{client}'", "select from millrace.door",
                    "select millrace.door_is('mail', 'mail_take', 'client', 'open', 'Is mine.')",
                    "select millrace.view_is('mail', 'mail_messages', 'client')",
                    "select millrace.door_close('claim', false, '{worker}')", "select millrace.doors_tidy()",
                ] {
                    #expect(try await caller.refusal(of: statement)?.sqlState == "42501", "\(role): \(statement)")
                }
                await caller.close()
            }
        }
    }

    @Test func `the page of doors lists those of the database`() async throws {
        let page = try String(
            contentsOf: URL(filePath: #filePath).deletingLastPathComponent().appending(
                path: "../../deploy/guides/doors.md"), encoding: .utf8)
        let list = try #require(page.split(separator: "## All doors").last)
        var listed: Set<String> = []
        for line in list.split(separator: "\n") where line.hasPrefix("| ") && line.contains("`") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            for name in cells[3].matches(of: /`(\w+)`/).map(\.1) {
                listed.insert("\(cells[0]) \(name): \(cells[1]), \(cells[2])")
            }
        }
        try await withConnection(.movableClock) { owner in
            let doors = try await Set(
                owner.column(
                    """
                    select d.room || ' ' || d.name || ': '
                        || (select string_agg(r, ', ' order by n) from unnest(d.roles) with ordinality x(r, n)
                             where not (r = 'admin' and 'worker' = any (d.roles)) and not (r = 'operator' and 'viewer' = any (d.roles)))
                        || ', ' || case when d.is_view then 'read' else concat_ws(' ', d.rule, d.about) end
                      from millrace.door d
                    """))
            #expect(listed == doors, "\(listed.symmetricDifference(doors).sorted())")
        }
    }
}
