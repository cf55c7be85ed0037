import Foundation
import Postgres
import TestSupport
import Testing

/// The lines beside the functions say who may act for whom, and so does `deploy/guides/who-may.md`; here each of its cells is tried.
@Suite struct WhoMayTests {
    private struct Line: Hashable {
        var act: String
        var function: String
        /// Who may.
        var allowed: Set<String>
    }

    private static let actors = ["itself", "teen", "parent", "contact", "stranger", "back end", "staff"]

    /// As the lines beside the functions have it.
    private static func lines(on owner: Connection) async throws -> [Line] {
        try await owner.query(
            """
            select substring(a.act, '^(.*): [^:]*$'), d.name, substring(a.act, '[^:]*$')
              from millrace.door d cross join lateral unnest(d.who_may) a(act) order by d.room, d.name, 1
            """
        ) { row throws(PostgresError) in
            let who = try row.string(2).split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            return Line(act: try row.string(0), function: try row.string(1), allowed: Set(who).subtracting(["nobody"]))
        }
    }

    private static func page() throws -> [Line] {
        let guide = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../deploy/guides/who-may.md")
        let rows = try String(contentsOf: guide, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("|") }
            .map { $0.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) } }
        #expect(rows.first.map { Array($0.dropFirst(2)) } == actors)
        return rows.dropFirst(2).map { row in
            let cells = row.dropFirst(2)
            #expect(cells.count == actors.count && cells.allSatisfy { $0 == "yes" || $0 == "no" }, "\(row[0])")
            return Line(
                act: row[0], function: row[1].trimmingCharacters(in: ["`"]),
                allowed: Set(zip(actors, cells).filter { $0.1 == "yes" }.map(\.0)))
        }
    }

    /// By the acts' names. `$as` stands where a back end names the actor.
    private static let calls: [String: String] = [
        "invite somebody into their family": "family_invite('f', 'newcomer', 'teen')",
        "let somebody in without asking them": "family_join('f', 'newcomer', 'teen')",
        "put them into another family": "family_join('g', 'kid', 'teen')",
        "make them a parent, once they are invited to be one": "family_join('f', 'kid', 'parent')",
        "switch AI on or off for their family": "ai_switch('family', 'f', false)",
        "ask a model in their name": #"ai_ask('sentiment', '{"text": "I am fine."}', actor => 'kid')"#,
        "read an answer given to them": "ai_answer('$question'$as)",
        "see what they have asked":
            "ai_own($as) a right join (values (1)) v(n) on true cross join lateral (select coalesce(a.purpose = 'sentiment', false))",
        "see who is invited": "family_invitations('f')",
        "see what they are invited to": "family_invitations(of_person => 'kid')",
        "decline an invitation to them, or withdraw it": "family_uninvite('f', 'kid')",
        "take them out of the family": "family_leave('f', 'kid')",
        "take a parent out of the family": "family_leave('f', 'dad')",
        "move the family to another zone": "family_zone('f', 'Asia/Tokyo')",
        "erase them": "person_erase('kid')",
        "read everything stored about them": "person_export('kid'$as)",
        "get a link to everything stored about them": "person_export_link('kid'$as)",
        "see their points": "points('kid'$as)",
        "see their streak": "streak('kid'$as)",
        "see their week": "weekly_stats('kid'$as)",
        "see their days": "quest_history('kid'$as)",
        "see their moods, once no longer private": "moods('kid'$as)",
        "see the family's quest": "quest_today('f'$as)",
        "see the family's hobbies": "hobbies('f'$as)",
        "see the family's cards": "cards('f'$as)",
        "complete their quest": "quest_complete('f', 'kid'$as)",
        "take back one of their completions": "quest_undo('f', 'kid'$as)",
        "log a mood for them": "mood_log('kid', 'happy'$as)",
        "silence the notice about one of their moods": "mood_notice_cancel('$mood'$as)",
        "ask for a tip for one of their moods": "mood_tip('$mood'$as)",
        "silence one of today's reminders": "reminder_cancel('kid'$as)",
        "delete one of their moods": "mood_delete('$mood'$as)",
        "save a hobby for them": "hobby_save('kid', 'Chess', 'Old'$as)",
        "read the family's thread": "chat_messages('$thread'$as)",
        "ask for the tone of the family's thread": "chat_tone('$thread'$as)",
        "write there": "chat_send('$thread', 'hello'$as)",
        "delete one of their messages": "chat_delete('$message'$as)",
        "delete any message, as an operator": "chat_remove('$message')",
        "see their family, and what they are invited to":
            "family_mine($as) m cross join lateral (select m ->> 'role' is not distinct from 'teen' and m ->> 'person' = 'kid')",
        "get a link to their picture": "person_avatar_link('kid'$as)",
        "see whom they watch over":
            "check_in_watched($as) w cross join lateral (select w -> 'people' -> 0 ->> 'person' is not distinct from 'zoe')",
        "see the alarms that they raised or were told of":
            "check_in_alarms($as) a cross join lateral (select coalesce((a -> 'alarms' -> 0 ->> 'is_own')::boolean, false))",
        "see their alarm": "check_in_alarm_show('$alarm'$as)",
        "set what one of their contacts sees": "check_in_contact_details('kid', 'bob', shares => 'state'$as)",
        "see their watch, contacts and alarms": "check_in_show('kid'$as)",
        "check in": "check_in('kid'$as)",
        "arm their watch": "check_in_arm('kid'$as)",
        "disarm their watch": "check_in_disarm('kid'$as)",
        "pause their watch": "check_in_pause('kid', now() + interval '1 hour'$as)",
        "change their interval": "check_in_set_interval('kid', '2 hours'$as)",
        "call for help in their name": "check_in_alarm('kid'$as)",
        "call for help, and hear who is told": "check_in_help('kid'$as)",
        "drill their contacts": "check_in_drill('kid'$as)",
        "name a contact for them": #"check_in_contact('kid', 'new', 1, '{"mail": "new@example.com"}'$as)"#,
        "remove one of their contacts": "check_in_contact_remove('kid', 'second'$as)",
        "ask one of their contacts again": "check_in_consent_ask('kid', 'second'$as)",
        "agree to be their contact": "check_in_accept('kid', true$as)",
        "answer their alarm": "check_in_respond('$alarm', 'bob', 'acknowledged')",
        "say that they are safe": "check_in_respond('$alarm', 'kid', 'safe')",
        "end their alarm as an operator": "check_in_resolve('$alarm', 'r')",
        "confirm one of their contacts as an operator": "check_in_confirm('kid', 'second')",
        "say by a link that an address agrees": "check_in_consent('$ref', true)",
        "say by a link that an address never agrees": "check_in_never('$ref')",
        "block an address from questions": "consent_block('mail', 'other@example.com')",
        "lift that": "consent_unblock('mail', 'never@example.com')",
        "set the limits of questions": #"check_in_rules_set('{"asker_day": 5}')"#,
        "submit what they did offline":
            #"sync_push('phone', '[{"id": "00000000-0000-4000-8000-00000000000a", "op": "mood_log", "args": {"person": "kid", "color": "calm"}}]') f cross join lateral (select f.outcome = 'applied')"#,
        "remove the token of one of their devices": "sync_device_remove('phone')",
        "see what happens to their documents":
            "document_feed('l7'$as) f right join (values (1)) v(n) on true cross join lateral (select f.id is not null)",
        "hear what changes for them":
            "feed_mine(0$as) f right join (values (1)) v(n) on f.ref = 'kid' and f.change = 'armed' cross join lateral (select f.seq is not null)",
        "catch up with that":
            "sync_pull(0$as) f right join (values (1)) v(n) on f.ref = 'kid' and f.change = 'armed' cross join lateral (select f.seq is not null)",
        "get a link to one of their documents":
            "document_link((select v::uuid from current_setting('may.document') v), 'original'$as)",
        "see the state of their media": "media((select v::uuid from current_setting('may.media') v)$as)",
        "delete their media": "media_delete((select v::uuid from current_setting('may.media') v)$as)",
        "add a device for them": "device_add('kid', 'fcm', 'token-0002'$as)",
        "remove one of their devices": "device_remove('token-0001')",
        "set themselves a notice": "own_notice_schedule('kid', 'water', 'k', now() + interval '1 hour'$as)",
        "move one of those": "own_notice_move('kid', 'k', now() + interval '1 hour'$as)",
        "cancel one of those": "own_notice_cancel('kid', 'k'$as)",
        "set their name and preferences": "person_profile('kid', 'Kid'$as)",
        "see their name and picture": "person_show('kid'$as)",
        "set how they are told of one kind": "notice_kind('kid', 'daily_reminder', '{}'$as)",
        "set how they are told": "notice_preferences('kid', 'UTC', '0:00', '0:00', '{}', null$as)",
        "see their plan and quotas":
            "subscription_mine($as) m cross join lateral (select m ->> 'account' = 'person:kid')",
        "give them a plan": "subscription_set('pro', 'kid')",
        "say that a store's subscription is theirs": "subscription_link('stripe', 'sub', 'kid')",
        "read a notice that the app sent them": "notice_sent('kid', 'k')",
        "take back a notice that the app sent them": "notice_take_back('kid', 'k')",
        "award them points": "points_award('kid', 1, 'k', 'r')",
        "send them a notice": "notice_send('kid', 'k')",
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
            select millrace.notice_send('kid', 'mood_buffer', key => 'mood_buffer:' || id, at => now() + interval '1 hour') from millrace.mood;
            select millrace.notice_send('kid', 'daily_reminder', key => 'daily_reminder:2026-01-01', at => now() + interval '1 hour');
            select millrace.chat_send(millrace.chat_thread_create(actor => 'kid'), 'hello', actor => 'kid');
            select millrace.check_in_contact('kid', 'bob', 1, '{"mail": "bob@example.com", "push": true}', actor => 'kid'),
                   millrace.check_in_confirm('kid', 'bob', '{mail}'), millrace.check_in_arm('kid', actor => 'kid'),
                   millrace.check_in_contact('kid', 'second', 2, '{"mail": "second@example.com"}', actor => 'kid'),
                   millrace.check_in_alarm('kid', actor => 'kid'), millrace.consent_block('mail', 'never@example.com'),
                   millrace.device_add('kid', 'fcm', 'token-0001'),
                   millrace.own_notice_schedule('kid', 'water', 'k', now() + interval '1 hour', actor => 'kid'),
                   millrace.notice_send('kid', 'app.news', key => 'app:k', at => now() + interval '1 hour');
            select millrace.person_profile('kid', avatar => 'https://img.example.com/kid.png', actor => 'kid'),
                   millrace.check_in_contact('zoe', 'kid', 1, '{"push": true}', actor => 'zoe');
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
            let isClients = !line.allowed.isSubset(of: ["staff"]) || line.function == "family_join"
            let grantees = "\(name)_staff" + (isClients ? ", \(name)_gateway, \(name)_server" : "")
            for door in try await owner.column(
                "select p.oid::regprocedure from pg_proc p where p.pronamespace = 'millrace'::regnamespace and p.proname = '\(line.function)'"
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
        try await withConnection { owner in
            let lines = try await Self.lines(on: owner)
            #expect(Set(lines.map(\.act)) == Set(Self.calls.keys), "each line has a call, and each call a line")
            #expect(lines.count == Self.calls.count && lines.count >= 70)
            #expect(lines.allSatisfy { $0.allowed.isSubset(of: Self.actors) })
            #expect(try Set(Self.page()) == Set(lines), "the page is not as deploy/door-pages makes it")
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
                let call = (Self.calls[line.act] ?? "").replacing("$mood", with: mood)
                    .replacing("$alarm", with: alarm).replacing("$ref", with: ref)
                    .replacing("$thread", with: thread).replacing("$message", with: message)
                    .replacing("$question", with: question)
                for actor in Self.actors {
                    let isAllowed = line.allowed.contains(actor)
                    let who = line.function == "check_in_accept" ? "bob" : "kid"
                    let call = call.replacing("$as", with: Self.people[actor] == nil ? ", actor => '\(who)'" : "")
                        .replacing("(, ", with: "(")
                    let outcome = try await Self.tried(call, actor, name, owner)
                    let isRight = isAllowed ? outcome == "done" : outcome == "nothing" || Self.isRefusal(outcome)
                    if !isRight { wrong.append("\(line.act) by \(actor): \(outcome)") }
                }
            }
            #expect(wrong.isEmpty, "\(wrong.joined(separator: "\n"))")
            for role in ["login", "gateway", "server", "staff"] {
                try await owner.run("drop owned by \(name)_\(role); drop role \(name)_\(role)")
            }
        }
    }
}
