import Postgres
import RoomSchemas
import Schema
import TestSupport
import Testing

@testable import MillraceQueues

/// What quests keep of a family and of a person, in tables of their own.
@Suite(.enabled(if: Template.hasRooms)) struct QuestTablesTests {
    @Test func `clocks and streaks of a family and of people move into tables of quests, row by row`() async throws {
        try await withDatabase(.empty) { database in
            let owner = try await database.connect()
            try await owner.run(
                "create schema millrace; create table millrace.migration (number int primary key, name text not null, applied_at timestamptz not null default clock_timestamp())"
            )
            for migration in try OldSchema.migrations + RoomSchemas.adoption.scripts where migration.number <= 82 {
                try await owner.run(script: .shipped(migration.bytes))
                try await owner.run(
                    "insert into millrace.migration (number, name) values (\(migration.number), '\(migration.name)')")
            }
            try await owner.run(
                """
                insert into millrace.family
                    (family, zone, today, opened_at, next_rollover_at, due_at, streak, best, freezes, failures, problem, created_at)
                select 'f' || n, 'Asia/Tokyo', date '2020-01-01' + n, '2020-01-01', '2020-01-02', '2020-01-03', n, n + 1, n % 3, n, 'p' || n, now()
                  from generate_series(1, 300) n;
                insert into millrace.family_member
                    (person, family, role, joined_at, mood_streak, mood_best, mood_freezes, mood_last)
                select 'p' || n, 'f' || n, 'teen', now(), n, n + 1, n % 3, case when n % 2 = 0 then date '2020-01-01' + n end
                  from generate_series(1, 300) n;
                insert into millrace.family_member (person) values ('none')
                """)
            try await SchemaContents.writeDown(on: owner)
            let clocks = """
                select to_jsonb(f) - 'week_starts' - 'created_at' - 'family' || jsonb_build_object('family', f.family) from millrace.%% f order by f.family
                """
            let moods = """
                select jsonb_build_array(m.person, m.mood_streak, m.mood_best, m.mood_freezes, m.mood_last) from millrace.%% m
                 where m.mood_best > 0 order by m.person
                """
            func rows(_ query: String, of table: String) async throws -> [String] {
                try await owner.column(query.replacing("%%", with: table))
            }
            let before = (try await rows(clocks, of: "family"), try await rows(moods, of: "family_member"))
            #expect(before.0.count == 300 && before.1.count == 300)
            _ = try await Migrator.ofAllRooms().migrate(on: owner)
            #expect(try await rows(clocks, of: "quest_family") == before.0)
            #expect(try await rows(moods, of: "quest_person") == before.1)
            #expect(try await owner.int("select count(*) from millrace.quest_person where person = 'none'") == 0)
            #expect(try await owner.int("select count(*) from millrace.families") == 300)
            await owner.close()
        }
    }

    @Test func `a family that was there before its quests has a clock and an open day`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                drop trigger a_clock_follows_its_zone on millrace.family;
                drop trigger a_new_family_has_its_quest on millrace.family;
                drop trigger who_leaves_is_reminded_no_more on millrace.family_member;
                drop trigger a_reminder_moves_with_its_hour on millrace.profile;
                drop trigger a_reminder_has_its_hour on millrace.profile;
                select millrace.family_create('f', 'Asia/Tokyo')
                """)
            #expect(try await connection.int("select count(*) from millrace.families") == 0)
            _ = try await Migrator.ofAllRooms().migrate(on: connection)
            #expect(
                try await connection.bool(
                    "select zone = 'Asia/Tokyo' and today = millrace.day_at(millrace.now(), zone) from millrace.families"
                ))
            #expect(try await connection.column("select state from millrace.quests where family = 'f'") == ["open"])
        }
    }
}
