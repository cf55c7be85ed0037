import Postgres
import Synchronization
import TestSupport
import Testing

@testable import CheckIns

@Suite struct CheckInServiceTests {
    /// Adds `count` watches, of which some expired in the past and some expire within the next second.
    private func fill(_ count: Int, on connection: Connection) async throws {
        try await connection.run(
            """
            insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
            select 'p' || g, '1 hour', '5 min', '{}', 'UTC', 'armed', now(), x.due, x.due, now()
              from generate_series(1, \(count)) g, lateral (select now() + g * interval '1 s' / \(count) as due) x;
            insert into millrace.watch_contact (person, contact, step, wait, created_at) select person, person || '-c', 1, '1 hour', now() from millrace.watch;
            insert into millrace.watch_address (ref, person, contact, channel, address, verified_at)
            select gen_random_uuid(), person, contact, 'mail', person || '@example.com', now() from millrace.watch_contact
            """)
    }

    @Test func `two services share the work, are cut off again and again, and tell each contact once`() async throws {
        try await withDatabase { database in
            let owner = try await database.connect()
            try await fill(300, on: owner)
            let services = (0..<2).map { number in
                var options = CheckInService.Options(database: database.options, name: "w\(number)")
                options.batch = 7
                options.poll = .milliseconds(50)
                return CheckInService(options)
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for service in services { group.addTask { await service.run() } }
                try await eventually("all are raised") {
                    try await owner.run(
                        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like '%watch_step%' and pid <> pg_backend_pid() and random() < 0.02"
                    )
                    return try await owner.int("select count(*) from millrace.alarms") == 300
                }
                group.cancelAll()
            }
            #expect(try await owner.int("select count(distinct person) from millrace.alarms") == 300)
            #expect(try await owner.int("select count(*) from millrace.notice") == 300)
            var expired = 0
            for service in services { expired += await service.gauge.expired }
            #expect(expired <= 300)
            #expect(try await owner.bool("select beat < 60 and overdue = 0 from millrace.check_in_state()"))
            await owner.close()
        }
    }

    @Test func `one that was not told to watch does so as soon as there is anybody to watch over`() async throws {
        try await withDatabase(.movableClock) { database in
            let owner = try await database.connect()
            let pool = Pool(database.options, size: 1)
            var options = CheckInService.Options(database: database.options, name: "w")
            options.poll = .milliseconds(50)
            options.glance = {
                try await pool.withConnection { connection in try await CheckInAdmin.isWanted(on: connection) }
            }
            let service = CheckInService(options)
            let running = Task { await service.run() }
            try await eventually("it has looked") { await service.gauge.lastStep != nil }
            #expect(try await owner.int("select count(*) from millrace.watchman") == 0)
            try await owner.befriend()
            try await owner.arm("anna", "warnings => '{}',")
            try await eventually("it watches") { try await owner.int("select count(*) from millrace.watchman") == 1 }
            try await owner.advance(by: "61 min")
            try await eventually("the alarm is there") { try await owner.alarmState() == ["open"] }
            running.cancel()
            await running.value
            await pool.close()
            await owner.close()
        }
    }

    @Test func `the worker's idea of the time does not matter, only the database's`() async throws {
        try await withDatabase(.movableClock) { database in
            let owner = try await database.connect()
            try await owner.befriend()
            try await owner.arm("anna", "warnings => '{}',")
            let service = CheckInService(CheckInService.Options(database: database.options, name: "w"))
            let running = Task { await service.run() }
            try await eventually("it has looked") { await service.gauge.lastStep != nil }
            #expect(try await owner.alarmState().isEmpty)
            try await owner.advance(by: "61 min")
            try await eventually("the alarm is there") { try await owner.alarmState() == ["open"] }
            // The clock goes back: raised alarms stay raised, and nothing new comes.
            try await owner.advance(by: "-3 hours")
            let seen = await service.gauge.lastStep
            try await eventually("it has looked again") { await service.gauge.lastStep != seen }
            #expect(try await owner.told() == ["alarm.raised mum mail"])
            running.cancel()
            await running.value
            await owner.close()
        }
    }

    @Test func `an outside service hears of us while all is well, and only then`() async throws {
        try await withDatabase { database in
            let service = CheckInService(CheckInService.Options(database: database.options, name: "w"))
            let pings = Mutex(0)
            struct Deaf: Error {}
            let reporting = Task {
                await service.report(every: .milliseconds(5)) {
                    let count = pings.withLock { count in
                        count += 1
                        return count
                    }
                    if count % 2 == 0 { throw Deaf() }  // it hurts nobody
                }
            }
            #expect(pings.withLock { $0 } == 0)
            let watching = Task { await service.run() }
            try await eventually("it was told several times") { pings.withLock { $0 } > 4 }
            watching.cancel()
            reporting.cancel()
            await watching.value
            await reporting.value
        }
        var gauge = CheckInService.Gauge()
        #expect(!gauge.isWell(within: .seconds(10), now: .now))
        gauge.lastStep = .now
        #expect(gauge.isWell(within: .seconds(10), now: .now))
        #expect(!gauge.isWell(within: .seconds(10), now: .now + .seconds(11)))
        gauge.oldest = 60
        #expect(!gauge.isWell(within: .seconds(10), now: .now))
    }
}
