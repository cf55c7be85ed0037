import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// What lists answer with has bounds in bytes, which are in one table, `millrace.answer_bounds()`: a page ends before it would take more, and
/// the rest is on the next.
@Suite(.timeLimit(.minutes(15))) struct AnswerTests {
    /// How a door is read to its end, as alice through a gateway, a page after the other. `#` stands for where the last page ended.
    private struct List {
        var rows: String
        /// Where the next page begins, of a row.
        var key: String
        /// How many rows there are to read, as the owner counts them.
        var count: String
        /// Of the first page.
        var start = "null"
    }

    private static let lists: [String: List] = [
        "own_jobs": List(
            rows: "millrace.own_jobs(#, 500)", key: "id",
            count: "select count(*) from millrace.job where tenant = 'person:alice' and owner = '{role}'"),
        "ai_own": List(
            rows: "millrace.ai_own(#, 500)", key: "quote_literal(id)",
            count: "select count(*) from millrace.ai_question where actor = 'alice'"),
        "document_analysis": List(
            rows: "millrace.document_analysis(lesson_id => '{lesson}', page => 500, after => #)",
            key: "quote_literal(document)", count: "select 40"),
        "cards": List(
            rows: "millrace.cards('fam-a', #, 500)", key: "quote_literal(id)",
            count: "select count(*) from millrace.card"
        ),
        "hobbies": List(
            rows: "millrace.hobbies(null, #, 500)", key: "quote_literal(id)",
            count: "select count(*) from millrace.hobby"
        ),
        "chat_threads": List(
            rows: "millrace.chat_threads(#, 500)", key: "quote_literal(next)",
            count: "select count(*) from millrace.chat_member where person = 'alice'"),
        "chat_messages": List(
            rows: "millrace.chat_messages('{thread}', #, 500)", key: "quote_literal(n)",
            count: "select count(*) from millrace.chat_message where thread = '{thread}'"),
        "chat_search": List(
            rows: "millrace.chat_search('lake', #, 500)", key: "quote_literal(next)",
            count: "select count(*) from millrace.chat_message where text like '% lake %'"),
        "document_list": List(
            rows: "millrace.document_list(after => #, page => 500)", key: "quote_literal(id)",
            count: """
                select count(*) from millrace.document
                 where owner = 'alice' and (caller = '{role}' or (tenant is null and millrace.is_backend(caller)))
                """),
        "document_search": List(
            rows: "millrace.document_search('lake', after => #, page => 500)", key: "quote_literal(next)",
            count: "select count(*) from millrace.document_content"),
        "lesson_list": List(
            rows: "millrace.lesson_list(#, 500)", key: "quote_literal(next)",
            count: "select count(*) from millrace.lesson where owner = 'alice' and caller = '{role}'"),
        "person_export": List(
            rows: "millrace.person_export('alice', #, 500)", key: "quote_literal(place)",
            count: """
                select sum((xpath('/row/n/text()', query_to_xml(format('select count(*) as n from millrace.%I(''alice'')', h.function), true, true, '')))[1]::text::int)
                  from millrace.hook h where h.event = 'export'
                """),
        "published": List(
            rows: "millrace.published({job}, #, 500)", key: "n", count: "select count(*) from millrace.published",
            start: "0"),
        "quest_history": List(
            rows: "millrace.quest_history('alice', #, 500)", key: "quote_literal(day)",
            count: "select count(*) from millrace.quest where family = 'fam-a'"),
    ]

    /// Lists whose rows are so small that a full page cannot be large, with the largest rows that there are.
    private static let small = [
        "moods": "millrace.moods('alice', page => 500)",
        "family_invitations": "millrace.family_invitations(of_family => 'fam-a', page => 500)",
        "document_feed": "millrace.document_feed(page => 500)", "feed_mine": "millrace.feed_mine(page => 500)",
        "sync_pull": "millrace.sync_pull(page => 500)", "sync_devices": "millrace.sync_devices()",
        "chat_status": "millrace.chat_status('{message}')",
    ]

    @Test func `every list that clients may ask for has a bound, and the guide prints the table`() async throws {
        try await DoorWorld.with { world in
            let lists = try await world.owner.column(
                """
                select distinct p.proname from pg_proc p
                 where p.pronamespace = 'millrace'::regnamespace and p.proretset and p.proname not like 'gateway%'
                   and has_function_privilege('\(world.names.client)', p.oid, 'execute')
                """)
            #expect(lists.count > 30)
            let bounded = try await Set(world.owner.column("select door from millrace.answer_bounds()"))
            #expect(bounded == Set(lists).union(["document_text"]))
            let cut = try await Set(world.owner.column("select door from millrace.answer_bounds() where is_cut"))
            #expect(cut == Set(Self.lists.keys).union(["document_text"]))
            let rows = try await world.owner.column(
                "select format('| `%s` | %s | %s |', door, most, case when is_cut then 'the page ends' else 'no more fits in' end) from millrace.answer_bounds()"
            )
            let guide = try String(
                contentsOf: URL(filePath: #filePath).deletingLastPathComponent().appending(
                    path: "../../deploy/guides/limits.md"), encoding: .utf8)
            let printed: [String] = guide.components(separatedBy: "\n").filter { $0.hasPrefix("| `") }
            #expect(printed == rows)
        }
    }

    @Test func `a page ends before it would take more, and the pages together are everything, once`() async throws {
        try await DoorWorld.with { world in
            let places = try await Self.fill(world)
            let caller = try await world.caller("signed in").connection
            try await caller.run("set statement_timeout = '300s'")
            for (door, list) in Self.lists.sorted(by: { $0.key < $1.key }) {
                let most = try await world.owner.int(
                    "select most from millrace.answer_bounds() where door = '\(door)'")
                let all = try await world.owner.int(places.named(list.count))
                var (place, pages, keys) = (list.start, 0, Set<String>())
                while true {
                    let page = try await caller.records(
                        "select \(list.key), octet_length(r::text) from \(places.named(list.rows).replacing("#", with: place)) r"
                    )
                    guard let last = page.last else { break }
                    let cells = page.map { row in row.dropFirst().dropLast().split(separator: ",").map(String.init) }
                    let bytes = cells.reduce(0) { $0 + (Int($1.last ?? "") ?? 0) }
                    #expect(bytes <= most || page.count == 1, "\(door): \(page.count) rows with \(bytes) bytes")
                    for cell in cells { #expect(keys.insert(cell[0]).inserted, "\(door) gives \(cell[0]) twice") }
                    place = String(last.dropFirst().prefix { $0 != "," })
                    pages += 1
                }
                #expect(keys.count == all && pages > 1, "\(door): \(keys.count) of \(all) on \(pages) pages")
            }
            for (door, rows) in Self.small {
                let most = try await world.owner.int(
                    "select most from millrace.answer_bounds() where door = '\(door)'")
                let bytes = try await caller.int(
                    "select coalesce(sum(octet_length(r::text)), 0) from \(places.named(rows)) r")
                #expect(bytes > 0 && bytes <= most, "\(door): \(bytes) bytes")
            }
            // A text is one value: of several pages more is refused, and says how many fit.
            let text = "select octet_length(millrace.document_text('\(places.document)'"
            let refusal = try await caller.refusal(of: "\(text)))")
            #expect(refusal?.sqlState == "53400" && refusal?.detail?.contains("too_large") == true)
            let fits = try #require(refusal?.hint?.firstMatch(of: /the pages up to ([0-9]+)/)?.1)
            let part = try await caller.int("\(text), 1, \(fits)))")
            #expect(part <= 1_048_576 && part > 1_000_000)
            #expect(try await caller.refusal(of: "\(text), 1, \(fits) + 1))")?.sqlState == "53400")
            #expect(try await world.owner.int("\(text)))") > 1_048_576, "staff reads it whole")
            await caller.close()
        }
    }

    /// What the statements name in braces.
    private struct Places {
        var role: String
        var lesson: String
        var job: String
        var thread: String
        var message: String
        var document: String

        func named(_ text: String) -> String {
            text.replacing("{role}", with: role).replacing("{lesson}", with: lesson).replacing("{job}", with: job)
                .replacing("{thread}", with: thread).replacing("{message}", with: message)
        }
    }

    /// More of alice's than a page takes, in every list.
    private static func fill(_ world: DoorWorld) async throws -> Places {
        let lesson = "l" + String(repeating: "😀", count: 100)
        let caller = try await world.caller("signed in").connection
        try await caller.run("set statement_timeout = '300s'")
        try await caller.run(
            """
            select count(millrace.enqueue('mine', jsonb_build_object('a', repeat('x', 400000)))) from generate_series(1, 7) n;
            select count(millrace.document_register('https://a.example/' || n, repeat('😀', 500), lesson_id => '\(lesson)')) from generate_series(1, 450) n;
            select count(millrace.lesson_put('m' || n, title => repeat('😀', 500), data => jsonb_build_object('a', repeat('x', 16000)))) from generate_series(1, 100) n;
            select count(millrace.sync_device_add('d' || repeat('x', 120) || n, repeat('😀', 100))) from generate_series(1, 20) n
            """)
        await caller.close()
        let owner = world.owner
        try await owner.run(
            """
            insert into millrace.ai_question (id, purpose, version, actor, caller, locale, input, key, status, answer, asked_at, ended_at)
            select gen_random_uuid(), 'sentiment', 1, 'alice', current_user, 'en', '{}', sha256(n::text::bytea), 'answered', to_jsonb(repeat('x', 60000)), now(), now()
              from generate_series(1, 40) n;
            insert into millrace.ai_question (id, purpose, version, actor, caller, locale, input, key, room, ref, status, answer, asked_at, ended_at)
            select gen_random_uuid(), 'document_analysis', 1, 'alice', current_user, 'en', '{}', sha256(d.id::text::bytea), 'documents', d.id, 'answered',
                   jsonb_build_object('summary', repeat('x', 60000)), now(), now()
              from (select id from millrace.document where owner = 'alice' and lesson_id = '\(lesson)' order by seq limit 40) d;
            with h as (
                insert into millrace.hobby (id, person, name, folded, fact, day, at)
                select gen_random_uuid(), 'alice', 'h' || n, 'h' || n, repeat('😀', 1000), date '2026-01-01' + n, now() + n * interval '1 s' from generate_series(1, 400) n
                returning *
            )
            insert into millrace.card (id, hobby, fact, at, family) select gen_random_uuid(), h.id, h.fact, h.at, 'fam-a' from h;
            with t as (
                insert into millrace.chat_thread (id, family, title, created_by, digest, last_n, last_seq, last_at, created_at)
                select gen_random_uuid(), 'fam-a', repeat('t', 100), 'large', sha256(n::text::bytea), 0, 100000 + n, now(), now() from generate_series(1, 60) n
                returning id
            )
            insert into millrace.chat_member (thread, person, since_n, joined_at)
            select t.id, case m when 0 then 'alice' else repeat('😀', 120) || m end, 0, now() from t, generate_series(0, 50) m;
            insert into millrace.chat_message (id, thread, n, seq, sender, text, digest, at, received_at)
            select gen_random_uuid(), t.id, n, 200000 + n, 'alice',
                   repeat('a', 1900) || ' ' || repeat('b', 1900) || ' lake ' || repeat('c', 1900) || ' ' || repeat('d', 1900), sha256(n::text::bytea), now(), now()
              from (select id from millrace.chat_thread where created_by = 'large' order by last_seq limit 1) t, generate_series(1, 300) n;
            insert into millrace.document_page (document, page, status, stage, changed_at)
            select d.id, n, 'done', 'done', now()
              from (select id from millrace.document where lesson_id = '\(lesson)' order by seq limit 1) d, generate_series(1, 200) n;
            insert into millrace.document_content (document, page, config, text, content, search)
            select d.id, n, 'simple', x.t, '{}', to_tsvector('simple', x.t)
              from (select id from millrace.document where lesson_id = '\(lesson)' order by seq limit 1) d, generate_series(1, 200) n,
                   lateral (select (select string_agg(repeat(chr(97 + k), 1900), ' ') from generate_series(0, 3) k) || ' lake '
                                || (select string_agg(repeat(chr(97 + k), 1900), ' ') from generate_series(4, 7) k) as t) x;
            update millrace.quest_item set description = repeat('d', 10000);
            insert into millrace.quest (family, day, item, state)
            select 'fam-a', date '2020-01-01' + n, (select min(id) from millrace.quest_item), 'missed' from generate_series(1, 300) n;
            insert into millrace.family_invitation (family, person, role, invited_by, invited_at, expires_at)
            select 'fam-a', repeat('😀', 120) || n, 'teen', repeat('😀', 128), now(), now() + interval '1 day' from generate_series(1, 500) n;
            insert into millrace.mood (id, person, day, color, emoji, at, shared_at)
            select gen_random_uuid(), 'alice', date '2026-01-01', 'happy', repeat('😀', 16), now(), now() from generate_series(1, 500) n
            """)
        func value(_ sql: String) async throws -> String { try #require(try await owner.value(sql)) }
        let job = try await value(
            "select id from public.made where role = 'signed in' and person = 'alice' and what = 'job'")
        try await owner.run(
            """
            insert into millrace.output (job) values (\(job)) on conflict do nothing;
            insert into millrace.published (job, n, value, session, number, attempt, at)
            select \(job), n, to_jsonb(repeat('x', 400000)), 1, n, 1, now() from generate_series(1, 6) n
            """)
        let thread = try await value(
            "select id from millrace.chat_thread where created_by = 'large' order by last_seq limit 1")
        return Places(
            role: world.signedIn, lesson: lesson, job: job, thread: thread,
            message: try await value(
                "select id from millrace.chat_message where thread = '\(thread)' order by n limit 1"),
            document: try await value(
                "select id from millrace.document where lesson_id = '\(lesson)' order by seq limit 1"))
    }
}
