import Foundation
import Postgres
import TestSupport
import Testing

/// Nobody fills a bound for others: `deploy/guides/limits.md` says whose each is.
@Suite struct CountedBoundTests {
    @Test func `every check takes its count from the table, and the guide prints that table`() async throws {
        try await withConnection { connection in
            let rows = try await connection.column(
                "select format('| %s | %s | %s | %s |', replace(bound, '_', ' '), coalesce(most::text, 'as set'), counted, whose) from millrace.counted_bounds()"
            )
            #expect(try CountedBound.page.get().map(\.line) == rows)
            let asked = try await Set(
                connection.column(
                    #"select m[1] from pg_proc p, regexp_matches(p.prosrc || pg_get_functiondef(p.oid), E'millrace\\.counted\\(''(\\w+)''', 'g') m where p.pronamespace = 'millrace'::regnamespace and p.prokind = 'f'"#
                ))
            let kept = try await Set(
                connection.column("select bound from millrace.counted_bounds() where most is not null"))
            #expect(asked == kept)
        }
    }

    @Test func `a greedy caller fills its own bound, and another's call still goes through`() async throws {
        try await DoorWorld.with { world in
            let bounds = try CountedBound.page.get()
            #expect(Set(bounds.map { $0.name.replacing(" ", with: "_") }) == Set(Self.cases.keys))
            try await world.owner.run(Self.ground)
            for bound in bounds {
                let name = bound.name.replacing(" ", with: "_")
                let one = try #require(Self.cases[name], "\(bound.name)")
                let pair = try #require(CountedCaller.pair(bound.whose), "\(bound.whose) is nobody that we know")
                let crowd = CountedCrowd(world: world, name: name, one: one)
                let greedy = try await crowd.ready(pair.greedy)
                var others: [CountedCaller] = []
                for other in pair.others { others.append(try await crowd.ready(other)) }
                #expect(try await crowd.fills(greedy), "\(bound.name) has no end for one caller")
                for other in others {
                    #expect(
                        try await crowd.goes(other, 0) == nil,
                        "\(bound.name) is filled for \(other.role) \(other.person)")
                }
            }
        }
    }

    private static let ground = """
        select millrace.link_key_set(sha256('k'), 'https://a.example', 100000);
        select millrace.ai_providers_tell('[{"name": "openai", "wire": "openai", "model": "m"}]');
        select millrace.session_open(77, 'w', 'h', 1, '0', null, array(select id from millrace.kind), 10, false)
        """

    private static func day(_ what: String, _ most: Int, _ prefix: String = "person") -> String {
        "update millrace.day_count set n = \(most) where what = '\(what)' and who = millrace.keyed_hash('\(prefix)', '{me}')"
    }

    private static func preferences(_ mail: String) -> String {
        "notice_preferences('{me}', 'UTC', '0:00', '0:00', jsonb_build_object('mail', \(mail)), null)"
    }

    private static func contact(_ mail: String) -> CountedCase {
        CountedCase(
            call: #"check_in_contact('{me}', 'c{n}', 1, jsonb_build_object('mail', '\#(mail)'))"#,
            through: """
                select exists (select from millrace.consent_ask where asker = millrace.keyed_hash('asker', '{me}') and asks > 0
                    and address = millrace.consent_hash('mail', '\(mail)', 'c{n}') and asked_at > millrace.now() - interval '1 hour')
                """)
    }

    /// A contact that may be told.
    private static let agreed = """
        insert into millrace.watch_contact (person, contact, step, wait, created_at) values ('{me}', 'ada', 1, '5 min', now());
        insert into millrace.watch_address (ref, person, contact, channel, hash, verified_at)
        values (gen_random_uuid(), '{me}', 'ada', 'push', millrace.consent_hash('push', null, 'ada'), now())
        """

    private static let askedAgain = """
        select exists (select from millrace.consent_ask where asker = millrace.keyed_hash('asker', '{me}') and asks > {n}
            and address = millrace.consent_hash('mail', '{bound}@same.example', 'c'))
        """

    private static func quota(_ name: String) -> String {
        "select millrace.quota_set('{tenant}', '\(name)', 3)"
    }

    private static func batch(_ rates: String) -> String {
        "select verdict = 'in' from millrace.mail_batch_open('resend', array['{id}'], true, 1, 60, \(rates))"
    }

    private static let question = #"ai_ask('sentiment', '{"text": "{n} {me}"}')"#
    private static let asks = """
        insert into millrace.ai_switched values ('tenant', '{tenant}', true, now(), 'x'), ('family', '{family}', true, now(), 'x') on conflict do nothing
        """
    private static let inThread = "chat_send((select id from millrace.chat_threads() limit 1), 'x')"
    private static let thread = "select millrace.chat_thread_create(actor => '{me}')"

    static let cases: [String: CountedCase] = [
        "signals": CountedCase(
            call: "signal('{bound}', 'k')",
            raised: """
                insert into millrace.signal (name, key, payload, to_all, owner, tenant, anywhere, at, expires_at, state)
                select s.name, s.key, s.payload, s.to_all, s.owner, s.tenant, s.anywhere, s.at, s.expires_at, 1 from millrace.signal s, generate_series(1, 9999) where s.name = '{bound}'
                """),
        "new_devices": CountedCase(call: "device_add('{me}', 'fcm', 'token-{me}-{n}')"),
        "new_addresses": CountedCase(call: preferences("'a{n}-{me}@new.example'")),
        // The same and another by turns: it is new each time.
        "givers": CountedCase(
            call: preferences("case when {n} % 2 = 0 then '{bound}@same.example' else 'b{n}-{me}@other.example' end")),
        "own_notices": CountedCase(
            call: "own_notice_schedule('{me}', 'w', 'k{n}', millrace.now() + interval '1 day')"),
        "own_notices_waiting": CountedCase(
            call: "own_notice_schedule('{me}', 'w', 'k{n}', millrace.now() + interval '1 day')",
            raised: """
                insert into millrace.notice (id, person, kind, key, data, alarm, status, due_at, created_at)
                select gen_random_uuid(), '{me}', 'own.w', 'own:x' || n, '{}', false, 'pending', now() + interval '1 day', now() from generate_series(1, 99) n
                """),
        "drills": CountedCase(
            prepared: agreed, call: "check_in_drill('{me}')"),
        "contacts": CountedCase(call: #"check_in_contact('{me}', 'c{n}', 1, '{"push": true}')"#),
        "questions": contact("q{n}-{me}@many.example"),
        "askers": CountedCase(
            call: #"check_in_contact('{me}', 'c', 1, jsonb_build_object('mail', '{bound}@same.example'))"#,
            through: askedAgain),
        "questions_again": CountedCase(
            call: #"check_in_contact('{me}', 'c', 1, jsonb_build_object('mail', '{bound}@same.example'))"#,
            raised: """
                update millrace.consent_ask set asks = 5, asked_at = now() - interval '2 days' where asker = millrace.keyed_hash('asker', '{me}');
                delete from millrace.watch_address where person = '{me}'
                """,
            through: askedAgain.replacing("asks > {n}", with: "asked_at > now() - interval '1 hour'")),
        "invitations": CountedCase(call: "family_invite('{family}', 'p{n}-{me}', 'teen')"),
        "offline_devices": CountedCase(call: "sync_device_add('d{n}')"),
        "messages": CountedCase(prepared: thread, call: inThread, raised: day("chat", 5000)),
        "threads": CountedCase(call: "chat_thread_create()"),
        "files": CountedCase(call: "chat_upload('image/png', 5)", raised: day("chat_upload", 500)),
        "documents": CountedCase(prepared: quota("documents"), call: "document_register('https://a.example/{n}')"),
        "pages": CountedCase(
            prepared: quota("pages"), call: "streak('{me}')",
            through: "select millrace.quota_use('{tenant}', 'pages', 1)"),
        "bytes": CountedCase(
            prepared: quota("bytes"), call: "streak('{me}')",
            through: "select millrace.quota_use('{tenant}', 'bytes', 1)"),
        "lessons": CountedCase(prepared: quota("lessons"), call: "lesson_put('l{n}-{me}')"),
        "computing_time": CountedCase(
            prepared: "\(quota("cpu_seconds")); select millrace.blob_allow(sha256('x'), '{role}', '{tenant}')",
            call: #"media_process('blob:' || encode(sha256('x'), 'hex'), '{"strip": true}')"#,
            raised: "update millrace.quota set used = 3 where tenant = '{tenant}'"),
        "messages_of_all": CountedCase(prepared: "\(thread); \(quota("messages"))", call: inThread),
        "ai_tokens": CountedCase(
            prepared: "\(asks); \(quota("ai_tokens"))", call: question,
            raised: "update millrace.quota set used = 3 where tenant = '{tenant}'"),
        "ai_tokens_of_a_family": CountedCase(
            prepared: "\(asks); select millrace.quota_set('family:{family}', 'ai_tokens', 1000)",
            call: "hobby_save('{me}', 'chess', 'fact {n}')",
            raised: "update millrace.quota set used = 1000 where tenant = 'family:{family}' and name = 'ai_tokens'",
            through: """
                select case when '{tenant}' = '{bound}-f' then coalesce(millrace.quota_left('{tenant}', 'ai_tokens') > 0, true)
                    else exists (select from millrace.ai_question where actor = '{me}' and input ->> 'fact' = 'fact {n}') end
                """),
        "ai_tokens_of_a_person": CountedCase(
            prepared: asks, call: question,
            raised:
                "insert into millrace.day_count values ('ai:sentiment', millrace.keyed_hash('person', '{me}'), millrace.today_utc(), 500000)"
        ),
        "warnings": CountedCase(
            prepared: "\(agreed); select millrace.check_in_arm('{me}', '1 hour', '5 min', '{10 min}', actor => '{me}')",
            call: "streak('{me}')",
            raised: day("warning", 100),
            then:
                "select millrace.watch_warn(w, make_interval(mins => 10 + {n}), millrace.now()) from millrace.watch w where w.person = '{me}'",
            through: """
                select count(*) filter (where channels = '{push}') = 0 and count(*) > {n} from millrace.notice where person = '{me}' and kind = 'alarm.warning'
                """),
        "mails": CountedCase(
            call:
                "mail_send(array['m{n}-{me}@d{n}.example'], 's', 't', sender => 'ada', tenant => nullif('{tenant}', ''))",
            through: batch("2, 60, 0, 0")),
        "mails_to_a_domain": CountedCase(
            call: "mail_send(array['m{n}-{me}@crowded.example'], 's', 't')", through: batch("0, 0, 4, 60")),
        "steps": CountedCase(
            call: "step('{object}', 's{n}', '1')",
            raised: """
                insert into millrace.step (job, name, value, session, number, attempt, at, place)
                select s.job, 'more' || n, '1', 0, 0, 0, now(), n + 1 from generate_series(1, 999) n, millrace.step s where s.job = split_part('{object}', '-', 3)::bigint and s.name = 's0'
                """),
        "published": CountedCase(
            call: "publish('{object}', '1', 'k{n}')",
            raised: "update millrace.output set kept = 10000 where job = split_part('{object}', '-', 3)::bigint"),
        "secrets": CountedCase(call: "webhook_rotate('{object}')"),
        "failures": CountedCase(
            call: "kind_id('{object}')",
            raised: """
                insert into millrace.failure_group (kind, class, gist, first_at, last_at, failed, dead, examples, lo, hi)
                select millrace.kind_id('{object}'), 'x' || n, 'x', now(), now(), 1, 0, '{}', 1, 1 from generate_series(1, 199) n
                """,
            then: """
                insert into millrace.failure_note (first_at, at, session, queue, kind, error, failed, dead, jobs, lo, hi)
                select now(), now(), 1, (select min(id) from millrace.queue), millrace.kind_id('{object}'), 'error of ' || repeat('x', 1 + {n}), 1, 0, '{}', 1, 1;
                select millrace.failures_fold()
                """,
            through: """
                select exists (select from millrace.failure_group where kind = millrace.kind_id('{object}') and class <> 'other' and gist = millrace.failure_gist('error of ' || repeat('x', 1 + {n})))
                """),
    ]
}

/// The callers of one bound.
struct CountedCrowd {
    let world: DoorWorld
    let name: String
    let one: CountedCase

    /// The caller with names of this bound's own, and with what it needs.
    func ready(_ caller: CountedCaller) async throws -> CountedCaller {
        var caller = caller
        caller.person = "\(name)-\(caller.person)"
        caller.family = "\(name)-\(caller.family)"
        if let tenant = caller.tenant { caller.tenant = "\(name)-\(tenant)" }
        if caller.role != "owner" {
            try await world.owner.run(
                """
                select millrace.family_create('\(caller.family)', 'UTC');
                select millrace.family_join('\(caller.family)', '\(caller.person)', 'parent')
                """)
        } else {
            caller.object = try await object(caller)
        }
        if !one.prepared.isEmpty { try await world.owner.run(filled(one.prepared, caller)) }
        return caller
    }

    private func object(_ caller: CountedCaller) async throws -> String {
        switch name {
        case "secrets":
            return try await world.owner.value(
                "select id from millrace.webhook_add('https://\(caller.person.replacing("_", with: "-")).example/', array['*'], handshake => false)"
            ) ?? ""
        case "failures": return "\(caller.person)"
        default:
            let job = try await world.owner.int("select millrace.enqueue('\(name)')")
            return try await world.claimed()[job] ?? ""
        }
    }

    /// Whether the caller's calls come to an end.
    func fills(_ caller: CountedCaller) async throws -> Bool {
        for n in 0..<130 {
            if let refusal = try await goes(caller, n) {
                #expect(n > 0, "\(name): \(refusal)")
                return true
            }
            if n == 0, !one.raised.isEmpty { try await world.owner.run(filled(one.raised, caller)) }
        }
        return false
    }

    /// Why a call of the caller is not let through; nil: it is.
    func goes(_ caller: CountedCaller, _ n: Int) async throws -> String? {
        let door = try await world.caller(caller.role)
        let connection = door.connection
        if caller.role == "signed in" {
            let tenant = caller.tenant.map { ", \"tenant\": \"\($0)\"" } ?? ""
            try await connection.run(
                "select set_config('request.jwt.claims', '{\"sub\": \"\(caller.person)\"\(tenant)}', false)")
        }
        let call = filled(one.call, caller, n)
        let refusal = try await connection.refusal(
            of: "create temporary table said as select (millrace.\(call))::text as id")
        let id = refusal == nil ? try await connection.value("select id from said") ?? "" : ""
        await connection.close()
        if let refusal {
            #expect(
                ["53400", "55000"].contains(refusal.sqlState), "\(name): \(refusal.sqlState) \(refusal.message)")
            return refusal.message
        }
        if !one.then.isEmpty { try await world.owner.run(filled(one.then, caller, n)) }
        guard !one.through.isEmpty else { return nil }
        let isThrough = try await world.owner.bool(filled(one.through, caller, n).replacing("{id}", with: id))
        return isThrough ? nil : "it was not let through"
    }

    private func filled(_ text: String, _ caller: CountedCaller, _ n: Int = 0) -> String {
        let role =
            switch caller.role {
            case "signed in": world.signedIn
            case "client": world.names.attacker
            default: world.backend
            }
        return text.replacing("{me}", with: caller.person).replacing("{tenant}", with: caller.tenant ?? "")
            .replacing("{family}", with: caller.family).replacing("{object}", with: caller.object)
            .replacing("{bound}", with: name).replacing("{role}", with: role).replacing("{n}", with: "\(n)")
    }
}
