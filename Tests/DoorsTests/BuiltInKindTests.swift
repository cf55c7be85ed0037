import Foundation
import Postgres
import TestSupport
import Testing

/// A job of a kind of ours that names another's row: see `deploy/guides/doors.md`.
@Suite struct BuiltInKindTests {
    /// A row of alice's, and what a worker does first with a job that names it.
    private struct Target {
        let arguments: String
        /// What the worker calls; {token}, {job} and {row} are filled in.
        let call: String
        /// The answer to a job that may not do it.
        let nothing: String
        /// Whether another job than the row's may do its work for its owner.
        var isOwnersToo = true
    }

    private static let document = Target(
        arguments: #"{"document": "{row}", "round": 1}"#,
        call: "select count(*)::text from millrace.document_take('{token}', '{row}', 1)", nothing: "0")
    private static let question = Target(
        arguments: #"{"question": "{row}"}"#, call: "select what from millrace.ai_take('{token}', '{row}')",
        nothing: "done", isOwnersToo: false)

    private static func mail(_ kind: String) -> Target {
        Target(
            arguments: #"{"message": "{row}"}"#,
            call:
                "select verdict from millrace.mail_take(array[{job}]::bigint[], array['\(kind)'], array['{\"message\": \"{row}\"}'], null, null, null)",
            nothing: "discard")
    }

    private static let targets: [String: Target] = [
        "document.receive": document, "document.finish": document,
        "document.page": Target(
            arguments: #"{"document": "{row}", "round": 1, "page": 1}"#,
            call: "select count(*)::text from millrace.document_take('{token}', '{row}', 1, 1)", nothing: "0"),
        "media.process": Target(
            arguments: #"{"media": "{row}"}"#,
            call: "select count(*)::text from millrace.media_take('{token}', '{row}')", nothing: "0", isOwnersToo: false
        ),
        "mail.send": mail("mail.send"), "mail.password_reset": mail("mail.password_reset"),
        "mail.account_verification": mail("mail.account_verification"), "mail.welcome": mail("mail.welcome"),
        "mail.account_notification": mail("mail.account_notification"),
        "ai.ask": question, "ai.sentiment": question,
    ]

    /// Of staff alone: who else may enqueue the kind is refused.
    private static let staffs = [
        "ai.batch": "select what from millrace.ai_batch_take('{token}', gen_random_uuid())",
        "ai.forget": "select count(*) from millrace.ai_leftovers_due('{token}', 'openai')",
    ]

    /// They name no row, or do nothing with it that is not due anyway.
    private static let harmless: Set = ["subscriptions.due", "quests.rollover", "template.render"]

    @Test func `a job does the work of a row only for whose row it is`() async throws {
        try await DoorWorld.with { world in
            let kinds = try DoorTests.table.get().kinds
            #expect(Set(kinds) == Set(Self.targets.keys).union(Self.staffs.keys).union(Self.harmless))
            try await world.owner.run(
                """
                \(Self.rows(world));
                select millrace.session_open(77, 'w', 'h', 1, '0', null, array(select id from millrace.kind), 10, false)
                """)
            let alice = try await world.caller("signed in").connection
            let bob = try await world.caller("signed in").connection
            try await bob.run("select set_config('request.jwt.claims', '{\"sub\": \"bob\"}', false)")
            let client = try await world.caller("client").connection
            for kind in kinds where !Self.harmless.contains(kind) {
                let table = kind.prefix { $0 != "." }
                let row =
                    try await world.owner.value(
                        "select id from public.made where role = 'signed in' and person = 'alice' and what = '\(table)'"
                    )
                    ?? ""
                let target = Self.targets[kind]
                func answer(_ connection: Connection) async throws -> String {
                    try await Self.answer(
                        target?.call ?? Self.staffs[kind] ?? "", kind, target?.arguments ?? "{}", row, connection, world
                    )
                }
                for (name, stranger) in ["bob": bob, "a client": client] {
                    let said = try await answer(stranger)
                    #expect(said == target?.nothing ?? "42501", "\(kind) of \(name): \(said)")
                }
                guard let target else { continue }
                for (name, friend) in ["its owner": alice, "staff": world.owner] {
                    let said = try await answer(friend)
                    #expect((said != target.nothing) == target.isOwnersToo, "\(kind) of \(name): \(said)")
                }
            }
            for connection in [alice, bob, client] { await connection.close() }
        }
    }

    @Test func `the page lists every kind that a function of ours enqueues`() async throws {
        try await withConnection { connection in
            let kinds = try DoorTests.table.get().kinds
            let enqueued = try await connection.column(
                #"select distinct m[1] from pg_proc p, regexp_matches(p.prosrc, E'enqueue_one\\(''([a-z._]+)''', 'g') m where p.pronamespace = 'millrace'::regnamespace"#
            )
            #expect(enqueued.count >= 7)
            #expect(Set(enqueued).subtracting(kinds).isEmpty)
            let others = try await connection.column(
                "select k.name from millrace.kind k where k.name ~ '^(mail|document|media|ai|quests|subscriptions|template)[.]'"
            )
            #expect(Set(others).subtracting(kinds).isEmpty)
        }
    }

    /// Else a move to another database would leave its row behind.
    @Test func `a job that names a row is known to name one`() async throws {
        try await withConnection { connection in
            let kinds = try DoorTests.table.get().kinds.filter { !Self.movable.contains($0) }
            let unknown = try await connection.column(
                """
                select k from unnest(string_to_array('\(kinds.joined(separator: " "))', ' ')) k
                 where not k like any (array(select h.said from millrace.hooks_list('rows', must => true) h))
                """)
            #expect(unknown.isEmpty, "\(unknown)")
        }
    }

    /// All of what it does is in its arguments.
    private static let movable: Set = ["template.render"]

    /// A page that waits and a question; and what strangers may enqueue.
    private static func rows(_ world: DoorWorld) -> String {
        """
        select millrace.grant_enqueue('\(world.signedIn)'), millrace.grant_enqueue('\(world.names.attacker)');
        insert into millrace.document_page (document, page, status, stage, changed_at)
        select id::uuid, 1, 'waiting', 'classify', now() from public.made where what = 'document';
        select millrace.ai_providers_tell('[{"name": "openai", "wire": "openai", "model": "m"}]'), millrace.ai_switch('tenant', 'alice', true);
        insert into public.made select 'signed in', 'alice', 'ai', millrace.ai_ask('sentiment', '{"text": "x"}', 'alice', 'alice')::text
        """
    }

    /// What the worker's function answers to a job that the caller enqueues now; or the state of its error.
    private static func answer(
        _ call: String, _ kind: String, _ arguments: String, _ row: String, _ caller: Connection, _ world: DoorWorld
    ) async throws -> String {
        let job = try await caller.int(
            "select millrace.enqueue('\(kind)', '\(arguments.replacing("{row}", with: row))')")
        let token = try await world.claimed()[job] ?? ""
        #expect(!token.isEmpty, "\(kind): the job was not claimed")
        let statement = call.replacing("{token}", with: token).replacing("{job}", with: "\(job)")
            .replacing("{row}", with: row)
        try await world.owner.run("begin")
        let answer: String
        if let refusal = try await world.owner.refusal(of: statement) {
            answer = refusal.sqlState
        } else {
            try await world.owner.run("rollback; begin")
            answer = try await world.owner.value(statement) ?? ""
        }
        try await world.owner.run("rollback")
        return answer
    }
}
