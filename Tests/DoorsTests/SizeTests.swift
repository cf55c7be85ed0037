import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// All input has bounds, which are in one table, `millrace.input_bounds()`.
@Suite struct SizeTests {
    /// A call for each bound, as the person alice through a gateway. `#` stands for the size: at the bound, and one above.
    static let calls: [String: String] = [
        "name": "select millrace.streak(repeat('x', #), repeat('x', #))",
        "unique_key": "select millrace.enqueue('mine', unique_key => repeat('x', #))",
        "limit_key": "select millrace.enqueue('mine', limit_key => repeat('x', #))",
        "args": "select millrace.enqueue('mine', to_jsonb(repeat('x', # - 12)))",
        "metadata": "select millrace.enqueue('mine', metadata => jsonb_build_object('a', repeat('x', # - 17)))",
        "options": "select millrace.enqueue('mine', options => jsonb_build_object('backoff', repeat('x', # - 23)))",
        "tags": "select millrace.enqueue('mine', tags => array_fill('x'::text, array[#]))",
        "tag": "select millrace.enqueue('mine', tags => array[repeat('x', #)])",
        "jobs":
            "select count(*) from millrace.enqueue_many((select jsonb_agg('{}'::jsonb) from generate_series(1, #)))",
        "jobs_bytes": "select count(*) from millrace.enqueue_many(jsonb_build_array(repeat('x', # - 12)))",
        "signal": "select millrace.signal('mine', payload => to_jsonb(repeat('x', # - 2)))",
        "event_data": "select millrace.event_publish('com.example.mine', '/t', to_jsonb(repeat('x', # - 2)))",
        "event_subject": "select millrace.event_publish('com.example.mine', '/t', '1', repeat('x', #))",
        "source": "select millrace.event_publish('com.example.mine', repeat('x', #), '1')",
        "recipients":
            "select millrace.mail_send(array(select n || '@b.example' from generate_series(1, #) n), 's', 't')",
        "mailbox": "select millrace.mail_send(array[repeat('x', # - 16) || ' <ada@b.example>'], 's', 't')",
        "subject": "select millrace.mail_send(array['a@b.example'], repeat('x', #), 't')",
        "body": "select millrace.mail_send(array['a@b.example'], 's', repeat('x', #))",
        "mail_data":
            "select millrace.mail_send(array['a@b.example'], template => 'welcome', data => jsonb_build_object('user_name', repeat('x', # - 17)))",
        "headers":
            "select millrace.mail_send(array['a@b.example'], 's', 't', headers => (select jsonb_object_agg('X-' || lpad(n::text, 4, '0'), repeat('x', (# - 266) / 19 + case when n <= (# - 266) % 19 then 1 else 0 end)) from generate_series(1, 19) n))",
        "attachments":
            "select millrace.mail_send(array['a@b.example'], 's', 't', attachments => (select jsonb_agg('{\"filename\": \"a.txt\", \"content_type\": \"text/plain\", \"data\": \"aGk=\"}'::jsonb) from generate_series(1, #)))",
        "token": "select millrace.mail_password_reset('a@b.example', repeat('x', #), 'alice')",
        "title": "select millrace.document_register('https://a.example/x', repeat('x', #))",
        "storage_url": "select millrace.document_register('https://a.example/' || repeat('x', # - 18))",
        "password": "select millrace.document_register('https://a.example/x', password => repeat('x', #))",
        "ids": "select count(*) from millrace.document_delete(array_fill(gen_random_uuid(), array[#]))",
        "query": "select count(*) from millrace.document_search(repeat('x', #))",
        "page": "select count(*) from millrace.moods('alice', page => #)",
        "batch":
            "select millrace.mood_log_many((select jsonb_agg(jsonb_build_object('person', 'alice', 'color', 'zzz')) from generate_series(1, #)))",
        "emoji": "select millrace.mood_log('alice', 'happy', repeat('x', #))",
        "hobby": "select millrace.hobby_save('alice', repeat('x', #), 'f')",
        "fact": "select millrace.hobby_save('alice', 'chess', repeat('x', #))",
        "answer": "select millrace.card_answer(gen_random_uuid(), 'alice', repeat('x', #))",
        "own_notice_key":
            "select millrace.own_notice_schedule('alice', 'k', repeat('x', #), now() + interval '1 hour')",
        "own_notice_data":
            "select millrace.own_notice_schedule('alice', 'k', gen_random_uuid()::text, now() + interval '1 hour', jsonb_build_object('body', repeat('x', # - 12)))",
        "ai_input": "select millrace.ai_ask('sentiment', jsonb_build_object('text', repeat('x', # - 20)))",
        "display_name": "select millrace.person_profile('alice', repeat('x', #))",
        "avatar": "select millrace.person_profile('alice', avatar => 'https://' || repeat('x', # - 8))",
        "place": "select millrace.check_in_alarm('alice', place => jsonb_build_object('x', repeat('x', # - 9)))",
        "note": "select millrace.check_in_alarm('alice', repeat('x', #))",
        "warnings": "select millrace.check_in_arm('alice', warnings => array_fill('1 min'::interval, array[#]))",
        "device_token": "select millrace.device_add('alice', 'fcm', repeat('x', #))",
        "sync_ops":
            "select count(*) from millrace.sync_push('phone', (select jsonb_agg('{}'::jsonb) from generate_series(1, #)))",
        "sync_bytes": "select count(*) from millrace.sync_push('phone', jsonb_build_array(repeat('x', # - 12)))",
        "idempotency_key": "select count(*) from millrace.gateway_begin(repeat('x', #), 'x')",
        // Above it the answer is not kept, and that is no error: here it divides by zero.
        "gateway_answer":
            "select 1 / millrace.gateway_end('k', 200, to_jsonb(repeat('x', # - 12)))::int from millrace.gateway_begin('k', 'x')",
        "message": "select millrace.chat_send('00000000-0000-4000-8000-000000000000', repeat('x', #))",
        "message_attachments":
            "select millrace.chat_send('00000000-0000-4000-8000-000000000000', 'x', (select jsonb_agg(jsonb_build_object('storage_url', 'blob:' || repeat('0', 64), 'mime_type', 'image/png')) from generate_series(1, #)))",
        "thread_members": "select millrace.chat_thread_create(array(select 'p' || n from generate_series(1, #) n))",
        "thumbnail":
            "select millrace.media_process('blob:' || repeat('0', 64), jsonb_build_object('thumbnail', jsonb_build_object('width', #)))",
        "lesson_data": "select millrace.lesson_put('l', data => jsonb_build_object('a', repeat('x', # - 17)))",
        "channels":
            "select millrace.notice_preferences('alice', 'UTC', '1:00', '2:00', jsonb_build_object('push', true, 'kinds', jsonb_build_object(repeat('x', # - 33), '[]'::jsonb)), 'en')",
    ]

    /// Bounds of what providers give, which no app's role can try: the function that judges it divides by zero.
    static let workersCalls: [String: String] = [
        "ai_answer":
            "select 1 / (millrace.ai_problem('{\"type\": \"string\"}', to_jsonb(repeat('x', # - 2))::text) is null)::int"
    ]

    @Test func `each bound holds: at it a call goes on, one above it is refused, and nothing is stored`() async throws {
        try await DoorWorld.with { world in
            let bounds = try await world.owner.column("select input || ' ' || most from millrace.input_bounds()")
                .map { $0.split(separator: " ") }
            let caller = try await world.caller("signed in").connection
            for bound in bounds {
                let (input, most) = (String(bound[0]), Int(bound[1]) ?? 0)
                guard input != "attachments_bytes" else { continue }  // 40 megabytes: mail's own tests
                let call = try #require(Self.calls[input] ?? Self.workersCalls[input], "no call for \(input)")
                let connection = Self.calls[input] == nil ? world.owner : caller
                let fits = try await Self.refusal(of: call, size: most, on: connection)
                #expect(!Self.saysTooLarge(fits), "\(input) at \(most): \(fits ?? "")")
                let tooLarge = try await Self.refusal(of: call, size: most + 1, on: connection)
                #expect(tooLarge != nil && tooLarge != fits, "\(input) above \(most): \(tooLarge ?? "it went through")")
            }
            #expect(
                Set(bounds.map { String($0[0]) }).subtracting(["attachments_bytes"])
                    == Set(Self.calls.keys).union(Self.workersCalls.keys))
            await caller.close()
        }
    }

    private static func refusal(of call: String, size: Int, on connection: Connection) async throws -> String? {
        try await connection.run("begin")
        let error = try await connection.refusal(of: call.replacing("#", with: "\(size)"))
        try await connection.run("rollback")
        return error.map { "\($0.sqlState) \($0.message)" }
    }

    private static func saysTooLarge(_ refusal: String?) -> Bool {
        refusal.map { ["more than", "too long", "characters'", "takes"].contains(where: $0.contains) } ?? false
    }

    /// The calls that stopped a worker: sixty megabytes that take seven hundred bytes on their way in.
    @Test func `what is small only as long as it is compressed is refused`() async throws {
        try await DoorWorld.with { world in
            let client = try await world.caller("client").connection
            // Sixty megabytes are read before they are refused, which may take a busy machine long.
            try await client.run(
                "set statement_timeout = '300s'; create temporary table big as select repeat('x', 60000000) as t, to_jsonb(repeat('x', 60000000)) as j"
            )
            for call in [
                "millrace.enqueue('mine', '{}', tags => array[t])", "millrace.enqueue('mine', j)",
                "millrace.enqueue('mine', j, 'default')",
                "millrace.enqueue('mine', '{}', metadata => jsonb_build_object('a', j))",
                "millrace.enqueue('mine', '{}', options => jsonb_build_object('a', j))",
                "millrace.enqueue_many(jsonb_build_array(jsonb_build_object('kind', 'mine', 'args', j)))",
                "millrace.enqueue_many(jsonb_build_array(jsonb_build_object('kind', 'mine', 'tags', jsonb_build_array(t))))",
                "millrace.event_publish('com.example.mine', '/t', j)",
                "millrace.mail_send(array['a@b.example'], 's', t)",
                "millrace.mail_send(array[t], 's', 't')",
            ] {
                let refusal = try await client.refusal(of: "select \(call) from big")
                #expect(
                    ["53400", "22023"].contains(refusal?.sqlState), "\(call): \(refusal?.message ?? "it went through")")
                #expect((refusal?.message ?? "").utf8.count < 1000)
            }
            let owner = world.owner
            let staff = try await owner.refusal(
                of:
                    "select millrace.enqueue_many(jsonb_build_array(jsonb_build_object('kind', 'mine', 'tags', jsonb_build_array(repeat('x', 257)))))"
            )
            #expect(staff?.sqlState == "53400")
            await client.close()
        }
    }

    @Test func `every check takes its bound from the table, and the guide prints that table`() async throws {
        try await withConnection { connection in
            let asked = try await Set(
                connection.column(
                    #"select m[1] from pg_proc p, regexp_matches(p.prosrc || pg_get_functiondef(p.oid), E'millrace\\.most\\(''(\\w+)''', 'g') m where p.pronamespace = 'millrace'::regnamespace and p.prokind = 'f'"#
                ))
            let kept = try await Set(connection.column("select input from millrace.input_bounds()"))
            #expect(asked == kept)
            let rows = try await connection.column(
                "select format('| %s | %s %s |', replace(input, '_', ' '), most, unit) from millrace.input_bounds()")
            let guide = try String(
                contentsOf: URL(filePath: #filePath).deletingLastPathComponent().appending(
                    path: "../../deploy/guides/limits.md"), encoding: .utf8)
            // The first table of the page.
            let printed = guide.split(separator: "\n").drop { !$0.hasPrefix("|") }.prefix { $0.hasPrefix("|") }
                .dropFirst(2).map(String.init)
            #expect(printed == rows)
        }
    }
}
