import FoundationEssentials
import Postgres
import TestSupport
import Testing

/// What comes late, twice, or not to its end.
@Suite struct SyncOrderTests {
    private static func preferences(_ locale: String, ago: Double) -> SyncOp {
        SyncOp(
            "notice_preferences",
            #"{"person": "ada", "zone": "UTC", "quiet_from": "22:00", "quiet_to": "07:00", "channels": {}, "locale": "\#(locale)"}"#,
            ago: ago)
    }

    @Test func `what happened last is in force, field by field where fields are set apart`() async throws {
        try await SyncWorld.with { world in
            let phone = try await world.phone(of: "ada")
            #expect(try await world.push([Self.preferences("de", ago: 10)], on: phone) == ["applied"])
            #expect(try await world.push([Self.preferences("en", ago: 20)], on: phone) == ["applied superseded"])
            #expect(try await world.owner.value("select locale from millrace.notice_preference") == "de")
            #expect(try await world.push([Self.preferences("fr", ago: 5)], on: phone) == ["applied"])
            let newer = SyncOp("person_profile", #"{"person": "ada", "display_name": "Ada", "zone": null}"#, ago: 10)
            let older = SyncOp(
                "person_profile", #"{"person": "ada", "display_name": "A", "zone": "Asia/Tokyo"}"#, ago: 20)
            #expect(try await world.push([newer], on: phone) == ["applied"])
            #expect(try await world.push([older], on: phone) == ["applied"])
            #expect(
                try await world.owner.records("select display_name, zone from millrace.profile") == ["(Ada,Asia/Tokyo)"]
            )
            await phone.close()
        }
    }

    @Test func `what was changed directly since is newer than what a phone did before`() async throws {
        try await SyncWorld.with { world in
            try await world.arm("ada")
            let phone = try await world.phone(of: "ada")
            try await world.owner.run(
                """
                select millrace.notice_preferences('ada', 'UTC', '1:00', '2:00', '{}', 'de', 'ada'), millrace.person_profile('ada', 'Ada', actor => 'ada'),
                       millrace.check_in_disarm('ada', actor => 'ada')
                """)
            let ops = [
                Self.preferences("en", ago: 60), SyncOp("check_in_arm", #"{"person": "ada"}"#, ago: 60),
                SyncOp("person_profile", #"{"person": "ada", "display_name": "A"}"#, ago: 60),
            ]
            #expect(try await world.push(ops, on: phone) == Array(repeating: "applied superseded", count: 3))
            #expect(
                try await world.owner.records(
                    "select w.state, n.locale, p.display_name from millrace.watch w, millrace.notice_preference n, millrace.profile p"
                )
                    == ["(disarmed,de,Ada)"])
            await phone.close()
        }
    }

    @Test func `a watch is as the newest command left it`() async throws {
        try await SyncWorld.with { world in
            try await world.arm("ada")
            let phone = try await world.phone(of: "ada")
            let ops = [
                SyncOp("check_in_set_interval", #"{"person": "ada", "every": "2 hours"}"#, ago: 100),
                SyncOp("check_in_arm", #"{"person": "ada", "every": "5 hours", "grace": "1 min"}"#, ago: 200),
                SyncOp("check_in_disarm", #"{"person": "ada"}"#, ago: 300),
            ]
            for op in ops { #expect(try await world.push([op], on: phone).first?.hasPrefix("applied") == true) }
            #expect(
                try await world.owner.records("select state, every, grace from millrace.watch") == [
                    "(armed,02:00:00,00:01:00)"
                ])
            await phone.close()
        }
    }

    @Test func `two devices that hand in the same at once carry it out once`() async throws {
        try await SyncWorld.with { world in
            let ops = (0..<20).map { SyncOp("mood_log", SyncTests.mood, ago: Double($0)) }
            let outcomes = try await withThrowingTaskGroup { group in
                for device in 0..<4 {
                    group.addTask {
                        let phone = try await world.phone(of: "ada")
                        let sent = device % 2 == 0 ? ops : ops.reversed()
                        let outcomes = try await world.push(sent, device: "device-\(device)", on: phone)
                        await phone.close()
                        return outcomes
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(outcomes.filter { $0 == "applied" }.count == 20)
            #expect(outcomes.filter { $0 == "same" }.count == 60)
            #expect(try await world.owner.int("select count(*) from millrace.mood") == 20)
        }
    }

    @Test func `two pushes that wait for each other both end, and what was broken off is done the next time`()
        async throws
    {
        try await SyncWorld.with { world in
            func add(_ token: String, _ person: String) -> SyncOp {
                SyncOp("device_add", #"{"person": "\#(person)", "platform": "fcm", "token": "token-\#(token)"}"#)
            }
            let (ada, bob) = (try await world.phone(of: "ada"), try await world.phone(of: "bob"))
            try await ada.run("begin")
            try await bob.run("begin")
            #expect(try await world.push([add("one", "ada")], on: ada) == ["applied"])
            #expect(try await world.push([add("two", "bob")], on: bob) == ["applied"])
            let process = try await ada.process()
            let last = [add("two", "ada"), add("one", "bob")]
            async let adas = world.push([last[0]], on: ada)
            try await waitUntilBlocked(process, seenBy: world.owner)
            let bobs = try await world.push([last[1]], on: bob)
            #expect(bobs == ["refused transient"])
            try await bob.run("commit")
            #expect(["applied", "refused transient"].contains(try await adas.first))
            try await ada.run("commit")
            #expect(try await world.push([last[0]], on: ada).first.map { ["applied", "same"].contains($0) } == true)
            #expect(try await world.push([last[1]], on: bob) == ["applied"])
            #expect(
                try await world.owner.records("select token, person from millrace.device order by token")
                    == ["(token-one,bob)", "(token-two,ada)"])
            await ada.close()
            await bob.close()
        }
    }

    /// Once by itself in the middle of a statement, once by another before the commit.
    @Test(arguments: [true, false])
    func `a connection killed in the middle leaves nothing, and the push again does it once`(isWithin: Bool)
        async throws
    {
        try await SyncWorld.with { world in
            try await world.arm("ada")
            let ops =
                [SyncOp("check_in", #"{"person": "ada"}"#, ago: 1)]
                + (0..<10).map { SyncOp("mood_log", SyncTests.mood, ago: Double($0)) }
            let phone = try await world.phone(of: "ada")
            if isWithin {
                try await world.owner.run(
                    """
                    create function public.killed() returns trigger language plpgsql as $$ begin
                        if (select count(*) from millrace.mood) = 5 then perform pg_terminate_backend(pg_backend_pid()); end if;
                        return new; end $$;
                    create trigger killed before insert on millrace.mood for each row execute function public.killed()
                    """)
                await #expect(throws: PostgresError.self) { _ = try await world.push(ops, on: phone) }
                try await world.owner.run("drop function public.killed cascade")
            } else {
                try await phone.run("begin")
                #expect(try await world.push(ops, on: phone).allSatisfy { $0 == "applied" })
                let process = try await phone.process()
                try await world.owner.run("select pg_terminate_backend(\(process), 10000)")
                await #expect(throws: PostgresError.self) { try await phone.run("commit") }
            }
            #expect(try await world.owner.int("select count(*) from millrace.sync_done") == 0)
            #expect(try await world.owner.int("select count(*) from millrace.mood") == 0)
            let again = try await world.phone(of: "ada")
            #expect(try await world.push(ops, on: again) == Array(repeating: "applied", count: 11))
            #expect(try await world.push(ops, on: again) == Array(repeating: "same", count: 11))
            #expect(try await world.owner.int("select count(*) from millrace.mood") == 10)
            await again.close()
            await phone.close()
        }
    }

    @Test func `what was carried out is known for ninety days, and goes with the person`() async throws {
        try await SyncWorld.with { world in
            let phone = try await world.phone(of: "ada")
            _ = try await world.push([Self.preferences("de", ago: 10)], on: phone)
            try await world.owner.run("select millrace.test_clock_advance('89 days'), millrace.gateway_expire()")
            #expect(try await world.owner.int("select count(*) from millrace.sync_done") == 1)
            try await world.owner.run("select millrace.test_clock_advance('1 day 1 minute'), millrace.maintain()")
            #expect(try await world.owner.int("select count(*) from millrace.sync_done") == 0)
            try await world.owner.run("select millrace.test_clock_advance('1 day'), millrace.gateway_expire()")
            #expect(
                try await world.owner.int(
                    "select (select count(*) from millrace.sync_newest) + (select count(*) from millrace.sync_person)")
                    == 0)
            _ = try await world.push([SyncOp("mood_log", SyncTests.mood)], on: phone)
            try await phone.run("select millrace.sync_device_add('phone'); select millrace.gateway_begin('k', 'r')")
            #expect(try await phone.int("select (millrace.person_erase('ada') ->> 'gateway')::int") == 3)
            for table in ["sync_done", "sync_newest", "sync_person", "sync_device", "gateway_answer"] {
                #expect(try await world.owner.int("select count(*) from millrace.\(table)") == 0, "\(table)")
            }
            await phone.close()
        }
    }

    @Test func `a full push fits into a transaction`() async throws {
        try await SyncWorld.with { world in
            try await world.arm("ada")
            let phone = try await world.phone(of: "ada")
            let ops = (0..<500).map { index in
                switch index % 5 {
                case 0: SyncOp("check_in", #"{"person": "ada"}"#, ago: Double(index))
                case 1: SyncOp("mood_log", SyncTests.mood, ago: Double(index))
                case 2:
                    SyncOp(
                        "hobby_save", #"{"person": "ada", "name": "Chess \#(index % 20)", "fact": "\#(index)"}"#,
                        ago: Double(index))
                case 3: SyncOp("person_profile", #"{"person": "ada", "display_name": "Ada"}"#, ago: Double(index))
                default: SyncOp("mood_log", #"{"person": "eve", "color": "sad"}"#, ago: Double(index))
                }
            }
            // A push carries out what it can in five seconds. A phone sends the rest again: on a fast machine there is none.
            var (rest, outcomes): ([SyncOp], [SyncOutcome]) = (ops, [])
            while !rest.isEmpty {
                let said = try await world.push(rest, on: phone)
                let left = zip(rest, said).filter { $0.1.hasPrefix("refused transient") }.map(\.0)
                try #require(left.count < rest.count, "it has carried out nothing")
                outcomes += said.filter { !$0.hasPrefix("refused transient") }
                rest = left
            }
            #expect(outcomes.filter { $0 == "refused permission actor" }.count == 100)
            #expect(outcomes.filter { $0.hasPrefix("applied") }.count == 400)
            await phone.close()
        }
    }
}
