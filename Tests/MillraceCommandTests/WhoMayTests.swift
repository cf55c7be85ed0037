import Foundation
import Postgres
import TestSupport
import Testing

/// `deploy/guides/who-may.md` says who may act for whom; here each of its cells is tried.
@Suite struct WhoMayTests {
    private struct Line {
        var name: String
        var cells: [(actor: String, isAllowed: Bool)]
    }

    private static func lines() throws -> [Line] {
        let guide = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../deploy/guides/who-may.md")
        let rows = try String(contentsOf: guide, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("|") }
            .map { $0.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) } }
        let actors = try #require(rows.first).dropFirst(2)
        return rows.dropFirst(2).map { row in
            Line(
                name: row[1],
                cells: zip(actors, row.dropFirst(2)).map { actor, cell in
                    #expect(cell == "yes" || cell == "no", "\(row[1]): \(cell)")
                    return (actor, cell == "yes")
                })
        }
    }

    /// By the guide's names. `$as` stands where a back end names the actor.
    private static let calls: [String: String] = [
        "family_invite": "family_invite('f', 'newcomer', 'teen')",
        "family_join newcomer": "family_join('f', 'newcomer', 'teen')",
        "family_join elsewhere": "family_join('g', 'kid', 'teen')",
        "family_join parent": "family_join('f', 'kid', 'parent')",
        "ai_switch": "ai_switch('family', 'f', false)",
        "ai_ask": #"ai_ask('sentiment', '{"text": "I am fine."}', actor => 'kid')"#,
        "ai_answer": "ai_answer('$question'$as)",
        "ai_own":
            "ai_own($as) a right join (values (1)) v(n) on true cross join lateral (select coalesce(a.purpose = 'sentiment', false))",
        "family_invitations": "family_invitations('f')",
        "family_invitations own": "family_invitations(of_person => 'kid')",
        "family_uninvite": "family_uninvite('f', 'kid')",
        "family_leave": "family_leave('f', 'kid')",
        "family_leave parent": "family_leave('f', 'dad')",
        "family_zone": "family_zone('f', 'Asia/Tokyo')",
        "person_erase": "person_erase('kid')",
        "person_export": "person_export('kid'$as)",
        "points": "points('kid'$as)",
        "streak": "streak('kid'$as)",
        "weekly_stats": "weekly_stats('kid'$as)",
        "quest_history": "quest_history('kid'$as)",
        "moods": "moods('kid'$as)",
        "quest_today": "quest_today('f'$as)",
        "hobbies": "hobbies('f'$as)",
        "cards": "cards('f'$as)",
        "quest_complete": "quest_complete('f', 'kid'$as)",
        "quest_undo": "quest_undo('f', 'kid'$as)",
        "mood_log": "mood_log('kid', 'happy'$as)",
        "mood_delete": "mood_delete('$mood'$as)",
        "hobby_save": "hobby_save('kid', 'Chess', 'Old'$as)",
        "chat_messages": "chat_messages('$thread'$as)",
        "chat_send": "chat_send('$thread', 'hello'$as)",
        "chat_delete": "chat_delete('$message'$as)",
        "chat_remove": "chat_remove('$message')",
        "check_in_show": "check_in_show('kid'$as)",
        "check_in": "check_in('kid'$as)",
        "check_in_arm": "check_in_arm('kid'$as)",
        "check_in_disarm": "check_in_disarm('kid'$as)",
        "check_in_pause": "check_in_pause('kid', now() + interval '1 hour'$as)",
        "check_in_set_interval": "check_in_set_interval('kid', '2 hours'$as)",
        "check_in_alarm": "check_in_alarm('kid'$as)",
        "check_in_help": "check_in_help('kid'$as)",
        "check_in_drill": "check_in_drill('kid'$as)",
        "check_in_contact": #"check_in_contact('kid', 'new', 1, '{"mail": "new@example.com"}'$as)"#,
        "check_in_contact_remove": "check_in_contact_remove('kid', 'second'$as)",
        "check_in_consent_ask": "check_in_consent_ask('kid', 'second'$as)",
        "check_in_accept": "check_in_accept('kid', true$as)",
        "check_in_respond": "check_in_respond('$alarm', 'bob', 'acknowledged')",
        "check_in_respond safe": "check_in_respond('$alarm', 'kid', 'safe')",
        "check_in_resolve": "check_in_resolve('$alarm', 'r')",
        "check_in_confirm": "check_in_confirm('kid', 'second')",
        "check_in_consent": "check_in_consent('$ref', true)",
        "check_in_never": "check_in_never('$ref')",
        "consent_block": "consent_block('mail', 'other@example.com')",
        "consent_unblock": "consent_unblock('mail', 'never@example.com')",
        "check_in_rules_set": #"check_in_rules_set('{"asker_day": 5}')"#,
        "sync_push":
            #"sync_push('phone', '[{"id": "00000000-0000-4000-8000-00000000000a", "op": "mood_log", "args": {"person": "kid", "color": "calm"}}]') f cross join lateral (select f.outcome = 'applied')"#,
        "sync_device_remove": "sync_device_remove('phone')",
        "document_feed":
            "document_feed('l7'$as) f right join (values (1)) v(n) on true cross join lateral (select f.id is not null)",
        "feed_mine":
            "feed_mine(0$as) f right join (values (1)) v(n) on f.ref = 'kid' cross join lateral (select f.seq is not null)",
        "sync_pull":
            "sync_pull(0$as) f right join (values (1)) v(n) on f.ref = 'kid' cross join lateral (select f.seq is not null)",
        "document_link": "document_link((select v::uuid from current_setting('may.document') v), 'original'$as)",
        "media": "media((select v::uuid from current_setting('may.media') v)$as)",
        "media_delete": "media_delete((select v::uuid from current_setting('may.media') v)$as)",
        "device_add": "device_add('kid', 'fcm', 'token-0002'$as)",
        "device_remove": "device_remove('token-0001')",
        "own_notice_schedule": "own_notice_schedule('kid', 'water', 'k', now() + interval '1 hour'$as)",
        "own_notice_move": "own_notice_move('kid', 'k', now() + interval '1 hour'$as)",
        "own_notice_cancel": "own_notice_cancel('kid', 'k'$as)",
        "person_profile": "person_profile('kid', 'Kid'$as)",
        "person_show": "person_show('kid'$as)",
        "notice_preferences": "notice_preferences('kid', 'UTC', '0:00', '0:00', '{}', null$as)",
        "subscription_mine": "subscription_mine($as) m cross join lateral (select m ->> 'account' = 'person:kid')",
        "subscription_set": "subscription_set('pro', 'kid')",
        "subscription_link": "subscription_link('stripe', 'sub', 'kid')",
        "points_award": "points_award('kid', 1, 'k', 'r')",
        "notice_send": "notice_send('kid', 'k')",
    ]

    private static let people = [
        "itself": "kid", "teen": "sis", "parent": "mum", "contact": "bob", "stranger": "eve",
    ]

    private static func setUp(_ owner: Connection) async throws {
        try await owner.run(
            #"""
            select millrace.subscription_plan_set('pro', '{}');
            select millrace.family_create('f', 'UTC'), millrace.family_create('g', 'UTC');
            select millrace.family_join('f', 'mum', 'parent'), millrace.family_join('f', 'dad', 'parent'), millrace.family_join('f', 'kid', 'teen'),
                   millrace.family_join('f', 'sis', 'teen'), millrace.family_join('g', 'eve', 'parent');
            select millrace.family_invite('f', 'kid', 'parent', 'mum');
            select millrace.ai_providers_tell('[{"name": "openai", "wire": "openai", "model": "m"}]'), millrace.ai_switch('family', 'f', true);
            select millrace.ai_ask('sentiment', '{"text": "well"}', actor => 'kid');
            select millrace.quest_complete('f', 'kid', actor => 'kid'), millrace.mood_log('kid', 'calm', actor => 'kid');
            select millrace.chat_send(millrace.chat_thread_create(actor => 'kid'), 'hello', actor => 'kid');
            select millrace.check_in_contact('kid', 'bob', 1, '{"mail": "bob@example.com", "push": true}', actor => 'kid'),
                   millrace.check_in_confirm('kid', 'bob', '{mail}'), millrace.check_in_arm('kid', actor => 'kid'),
                   millrace.check_in_contact('kid', 'second', 2, '{"mail": "second@example.com"}', actor => 'kid'),
                   millrace.check_in_alarm('kid', actor => 'kid'), millrace.consent_block('mail', 'never@example.com'),
                   millrace.device_add('kid', 'fcm', 'token-0001'),
                   millrace.own_notice_schedule('kid', 'water', 'k', now() + interval '1 hour', actor => 'kid');
            insert into millrace.sync_device (person, device, token, claims, made_at, expires_at)
            values ('kid', 'phone', 'hash', '{"sub": "kid"}', now(), now() + interval '1 day');
            """#)
    }

    /// A gateway's login and the role that it takes on, an app's server, a worker: each with the doors that the guide gives it.
    private static func makeRoles(_ owner: Connection, _ name: String, _ lines: [Line]) async throws {
        try await owner.run(
            """
            create role \(name)_login login noinherit; create role \(name)_gateway nologin;
            create role \(name)_server login; create role \(name)_staff login; grant \(name)_gateway to \(name)_login;
            grant usage on schema millrace to \(name)_gateway, \(name)_server, \(name)_staff;
            grant execute on function millrace.right_staff() to \(name)_staff;
            select millrace.grant_backend('\(name)_server'), millrace.trust_claims('\(name)_login')
            """)
        for line in lines {
            let function = line.name.split(separator: " ")[0]
            let isClients = line.cells.contains { $0.isAllowed && $0.actor != "staff" } || function == "family_join"
            let grantees = "\(name)_staff" + (isClients ? ", \(name)_gateway, \(name)_server" : "")
            for door in try await owner.column(
                "select p.oid::regprocedure from pg_proc p where p.pronamespace = 'millrace'::regnamespace and p.proname = '\(function)'"
            ) { try await owner.run("grant execute on function \(door) to \(grantees)") }
        }
    }

    private static func isRefusal(_ state: String) -> Bool { ["42501", "P0002", "55000"].contains(state) }

    /// What came of it; `nothing` for an answer that says so.
    private static func tried(_ call: String, _ actor: String, _ name: String, _ owner: Connection) async throws
        -> String
    {
        let person = people[actor]
        let login = person == nil ? "\(name)_\(actor == "staff" ? "staff" : "server")" : "\(name)_login"
        try await owner.run("begin; set local session authorization \(login)")
        if let person {
            try await owner.run(
                "set local role \(name)_gateway; select set_config('request.jwt.claims', '{\"sub\": \"\(person)\"}', true)"
            )
        }
        let outcome: String
        do throws(PostgresError) {
            let value = try await owner.value("select x::text from millrace.\(call) x limit 1")
            outcome = value == "false" || value == "(f)" ? "nothing" : "done"
        } catch {
            outcome = error.sqlState ?? "\(error)"
        }
        try await owner.run("rollback; reset role; reset session authorization")
        return outcome
    }

    @Test func `everybody may do what the guide says, and nothing else of it`() async throws {
        let lines = try Self.lines()
        #expect(Set(lines.map(\.name)) == Set(Self.calls.keys), "each line has a call, and each call a line")
        #expect(lines.count >= 45)
        try await withConnection { owner in
            let name = TestCluster.name("may")
            try await Self.makeRoles(owner, name, lines)
            try await Self.setUp(owner)
            try await owner.run(
                """
                select millrace.document_register('https://a.example/1', 'one', lesson_id => 'l7', tenant => 'person:kid', actor => 'kid');
                update millrace.document set caller = '\(name)_gateway', blob = sha256('x');
                select millrace.link_key_set(sha256('k'), 'https://a.example'), set_config('may.document', id::text, false) from millrace.document;
                select millrace.blob_put(sha256('x'), 'x');
                select set_config('may.media', millrace.media_process('blob:' || encode(sha256('x'), 'hex'), '{"strip": true}', tenant => 'person:kid', actor => 'kid')::text, false);
                update millrace.media set caller = '\(name)_gateway'
                """)
            let mood = try await owner.value("select id from millrace.mood") ?? ""
            let alarm = try await owner.value("select id from millrace.alarm") ?? ""
            let thread = try await owner.value("select thread from millrace.chat_message") ?? ""
            let message = try await owner.value("select id from millrace.chat_message") ?? ""
            let question = try await owner.value("select id from millrace.ai_question") ?? ""
            let ref =
                try await owner.value("select ref from millrace.watch_address where contact = 'second'") ?? ""
            var wrong: [String] = []
            for line in lines {
                let call = (Self.calls[line.name] ?? "").replacing("$mood", with: mood)
                    .replacing("$alarm", with: alarm).replacing("$ref", with: ref)
                    .replacing("$thread", with: thread).replacing("$message", with: message)
                    .replacing("$question", with: question)
                for (actor, isAllowed) in line.cells {
                    let who = line.name == "check_in_accept" ? "bob" : "kid"
                    let call = call.replacing("$as", with: Self.people[actor] == nil ? ", actor => '\(who)'" : "")
                        .replacing("(, ", with: "(")
                    let outcome = try await Self.tried(call, actor, name, owner)
                    let isRight = isAllowed ? outcome == "done" : outcome == "nothing" || Self.isRefusal(outcome)
                    if !isRight { wrong.append("\(line.name) by \(actor): \(outcome)") }
                }
            }
            #expect(wrong.isEmpty, "\(wrong.joined(separator: "\n"))")
            for role in ["login", "gateway", "server", "staff"] {
                try await owner.run("drop owned by \(name)_\(role); drop role \(name)_\(role)")
            }
        }
    }
}
