import Foundation
import Glibc
import Postgres
import TestSupport
import Testing

@Suite struct QuestWorkerTests {
    private static func run(_ arguments: [String], on database: TestDatabase) async throws -> (
        code: Int32, output: String
    ) {
        let process = try MillraceProcess(arguments, database: database.url)
        return (try await process.ended(), process.output.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    @Test func `five workers that are killed at random take every family over its midnights once`() async throws {
        try await withDatabase(.movableClock) { database in
            let owner = try await database.connect()
            try await owner.run(
                """
                create table public.rolled (family text, day date, primary key (family, day));
                create function public.note() returns trigger language plpgsql as
                    $$ begin insert into public.rolled values (new.family, new.today); return null; end $$;
                create trigger note after update of today on millrace.quest_family for each row
                    when (old.today <> new.today) execute function public.note();
                select count(millrace.family_create('f' || n, case n % 3 when 0 then 'UTC' when 1 then 'Asia/Tokyo' else 'America/New_York' end))
                  from generate_series(1, 3000) n;
                select count(millrace.family_join('f' || n, 'p' || n, 'parent')) from generate_series(1, 3000) n
                """)
            let crew = (0..<5).map { number in
                Supervised { turn in
                    try await MillraceProcess.worker("w\(number)-\(turn)", database: database.url)
                }
            }
            for worker in crew { try await worker.begin() }
            for turn in 0..<4 {
                try await owner.run("select millrace.test_clock_advance('1 day')")
                // Several at once, as they would never be by the schedule.
                try await owner.run("select millrace.enqueue('quests.rollover') from generate_series(1, 3)")
                try await Task.sleep(for: .milliseconds(Int.random(in: 20...200)))
                await crew[turn % 5].kill()
                await crew[(turn + 2) % 5].kill()
            }
            try await eventually("all midnights are behind") {
                try await owner.bool(
                    "select not exists (select from millrace.quest_family where next_rollover_at <= millrace.now())")
            }
            for worker in crew { try await worker.stop() }
            let odd = try await owner.int(
                """
                select count(*) from (
                    select family, count(*) as n, max(day) - min(day) + 1 as span from public.rolled group by family) q
                 where n <> span or n not in (4, 5)
                """)
            #expect(odd == 0)
            #expect(try await owner.int("select count(distinct family) from public.rolled") == 3000)
            let verified = try await Self.run(["quests", "verify"], on: database)
            #expect(verified.code == 0 && verified.output.hasPrefix("3,000 families, 0 findings"), "\(verified.output)")
            await owner.close()
        }
    }

    @Test func `families are made, looked at, moved and verified from the command line`() async throws {
        try await withDatabase { database in
            let owner = try await database.connect()
            #expect(
                try await Self.run(["families", "create", "smith", "Europe/London"], on: database).output
                    == "smith is made")
            #expect(try await Self.run(["families", "create", "smith", "Asia/Tokyo"], on: database).code == 4)
            #expect(try await Self.run(["families", "create", "jones", "Mars/Base"], on: database).code == 2)
            #expect(try await Self.run(["families", "join", "smith", "anna", "parent"], on: database).code == 0)
            #expect(
                try await Self.run(["families", "invite", "smith", "ben", "teen"], on: database).output.hasPrefix(
                    "ben is invited until 2"))
            #expect(
                try await Self.run(["families", "invitations", "--family", "smith"], on: database).output.contains(
                    "ben"))
            #expect(
                try await Self.run(["families", "invite", "smith", "ben", "--withdraw"], on: database).output
                    == "ben is no longer invited")
            #expect(
                try await Self.run(["families", "invitations", "--person", "ben"], on: database).output
                    == "nobody is invited")
            #expect(try await Self.run(["families", "join", "smith", "ben", "teen"], on: database).code == 0)
            #expect(
                try await Self.run(["families", "leave", "smith", "ben"], on: database).output == "ben has left smith")
            #expect(try await Self.run(["families", "show", "nobody"], on: database).code == 3)
            let shown = try await Self.run(["families", "show", "smith", "--json"], on: database)
            #expect(shown.output.contains(#""members": 1"#) && shown.output.contains(#""version": 1"#))
            #expect(try await Self.run(["families", "zone", "smith", "Europe/Paris"], on: database).code == 0)
            #expect(
                try await Self.run(["quests", "today", "smith", "--jsonl"], on: database).output.contains(
                    #""state":"open""#))
            #expect(try await Self.run(["quests", "rollover", "--dry-run"], on: database).output == "nothing is due")
            #expect(try await Self.run(["quests", "verify"], on: database).code == 0)
            try await owner.run("update millrace.quest_family set streak = 9")
            let wrong = try await Self.run(["quests", "verify", "--json"], on: database)
            #expect(wrong.code == 1 && wrong.output.contains(#""findings": 1"#))
            #expect(try await Self.run(["quests", "verify", "--repair"], on: database).code == 1)
            #expect(try await Self.run(["quests", "verify"], on: database).code == 0)
            try await owner.run(
                "update millrace.quest_family set next_rollover_at = now() - interval '1 hour', due_at = now() - interval '1 hour'"
            )
            let late = try await Self.run(["status", "--json"], on: database)
            #expect(late.output.contains("1 families wait for their midnight"))
            #expect(
                try await Self.run(["quests", "rollover"], on: database).output.hasPrefix(
                    "1 families, 1 days, 0 failed"))
            #expect(
                try await Self.run(["quests", "history", "smith", "--limit", "2"], on: database).output.contains(
                    "missed"))
            await owner.close()
        }
    }
}
