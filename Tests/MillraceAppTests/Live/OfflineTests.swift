import Foundation
import Postgres
import TestSupport
import Testing

@testable import MillraceApp

@Suite struct OfflineTests {
    /// Anna has a watch that Mum looks after.
    private func arm(_ world: AppWorld) async throws {
        try await world.owner.run(
            """
            select millrace.check_in_contact('anna', 'mum', 1, '{"mail": "mum@example.org"}', actor => 'anna');
            select millrace.check_in_confirm('anna', 'mum');
            select millrace.check_in_arm('anna', warnings => '{}', actor => 'anna')
            """)
    }

    @Test func `what was done offline is there once when the gateway is back, check-ins first`() async throws {
        try await AppWorld.with { world in
            try await arm(world)
            try await world.withQueue("anna") { anna, queue, directory in
                let (first, second) = (NewMood(.happy), NewMood(.calm))
                let checkedIn = Date()
                #expect(try await anna.moods.log(first).isQueued)
                #expect(try await anna.checkIns.checkIn(at: checkedIn).isQueued)
                #expect(try await anna.moods.log(second).isQueued)
                #expect(await queue.pending.map(\.op) == ["check_in", "mood_log", "mood_log"])
                await queue.close()

                // The app starts again.
                let calls = world.calls("anna")
                let again = try await OfflineQueue(directory: directory, person: "anna", calls: calls)
                #expect(await again.pending.map(\.op) == ["check_in", "mood_log", "mood_log"])
                var outcomes = await again.outcomes().makeAsyncIterator()
                #expect(try await world.drain(again) == OfflineQueue.Report(ended: 3, waiting: 0))
                var words: [String] = []
                for _ in 0..<3 {
                    if let one = await outcomes.next() { words.append("\(one.operation.op) \(one.word)") }
                }
                #expect(words == ["check_in applied", "mood_log applied", "mood_log applied"])
                #expect(await again.pending == [])
                await again.close()
                let moods = try await world.owner.value(
                    "select string_agg(id::text, ' ' order by color) from millrace.mood where person = 'anna'")
                #expect(moods == "\(second.id.uuidString.lowercased()) \(first.id.uuidString.lowercased())")
                let seconds = try await world.owner.value(
                    "select extract(epoch from last_checked_in)::text from millrace.watch where person = 'anna'")
                #expect(abs(try #require(Double(seconds ?? "")) - checkedIn.timeIntervalSince1970) < 0.001)
            }
        }
    }

    @Test(arguments: Promise.wrongClocks)
    func `what a phone with a wrong clock kept counts for when it was done`(_ shift: Double) async throws {
        try await AppWorld.with { world in
            try await arm(world)
            try await world.owner.run(
                "update millrace.watch set last_checked_in = now() - interval '2 hours', expires_at = now() + interval '1 hour'"
            )
            let calls = world.calls("anna", shift: shift)
            try await world.withQueue("anna", calls) { anna, queue, _ in
                let at = Date(timeIntervalSinceNow: shift - 60)
                #expect(try await anna.moods.log(NewMood(.calm, at: at)).isQueued)
                #expect(try await anna.checkIns.checkIn(at: at).isQueued)
                var outcomes = await queue.outcomes().makeAsyncIterator()
                #expect(try await world.drain(queue) == OfflineQueue.Report(ended: 2, waiting: 0))
                for _ in 0..<2 {
                    let outcome = await outcomes.next()
                    #expect(
                        outcome?.word == .applied && outcome?.isSuperseded == false, "\(String(describing: outcome))")
                }
                let ages = try await world.owner.records(
                    """
                    select extract(epoch from now() - (select at from millrace.mood)) between 60 and 360,
                           extract(epoch from now() - (select last_checked_in from millrace.watch)) between 60 and 360
                    """)
                #expect(ages == ["(t,t)"])
            }
        }
    }

    @Test func `a place that was given offline counts as of when the person was there, and no record keeps it`()
        async throws
    {
        try await AppWorld.with { world in
            try await arm(world)
            try await world.withQueue("anna") { anna, queue, _ in
                let there = Date(timeIntervalSinceNow: -1)
                let place = CheckInPlace(latitude: 47.8095, longitude: -13.055, accuracy: 12, at: there)
                #expect(try await anna.checkIns.checkIn(place: place).isQueued)
                #expect(try await anna.emergency.help(note: "at the lake", place: place).isQueued)
                #expect(try await world.drain(queue) == OfflineQueue.Report(ended: 2, waiting: 0))
                for whose in ["person = 'anna'", "alarm is not null"] {
                    let kept = try await world.owner.value(
                        "select concat_ws(' ', latitude, longitude, accuracy) from millrace.place where \(whose)")
                    #expect(kept == "47.8095 -13.055 12", "\(whose)")
                    let at = try await world.owner.value(
                        "select extract(epoch from at)::text from millrace.place where \(whose)")
                    #expect(abs(try #require(Double(at ?? "")) - there.timeIntervalSince1970) < 0.001)
                }
                let tables = try await world.owner.column(
                    "select relname from pg_class where relnamespace = 'millrace'::regnamespace and relkind in ('r', 'p') and relname <> 'place'"
                )
                for table in tables {
                    #expect(
                        try await world.owner.int(
                            "select count(*) from millrace.\"\(table)\" x where x::text ~ '[^0-9:]:?(47[.]8095|13[.]055)'"
                        ) == 0,
                        "\(table)")
                }
            }
        }
    }

    @Test func `a drain whose answer was lost is repeated without a second effect`() async throws {
        try await AppWorld.with { world in
            try await world.withQueue("anna") { anna, queue, directory in
                for _ in 0..<3 { _ = try await anna.moods.log(.happy) }
                // A copy from before the drain is what a crash before its record leaves.
                let file = directory.appending(path: "operations")
                let before = try Data(contentsOf: file)
                #expect(try await world.drain(queue).ended == 3)
                await queue.close()
                try before.write(to: file)
                let again = try await OfflineQueue(directory: directory, person: "anna", calls: world.calls("anna"))
                var outcomes = await again.outcomes().makeAsyncIterator()
                #expect(try await world.drain(again).ended == 3)
                for _ in 0..<3 { #expect(await outcomes.next()?.word == .same) }
                await again.close()
                #expect(try await world.owner.int("select count(*) from millrace.mood where person = 'anna'") == 3)
            }
        }
    }

    @Test func `a drain needs no sign-in once the device has its token`() async throws {
        try await AppWorld.with { world in
            let isSignedIn = Locked(true)
            let calls = world.calls("anna") { _ in
                guard isSignedIn.value else { throw AppError(.authentication, "nobody is signed in") }
                return AppWorld.token(of: "anna")
            }
            try await world.withQueue("anna", calls) { anna, queue, _ in
                try await world.serving { try await queue.register() }
                isSignedIn.withLock { $0 = false }
                let other = AppClient.live(
                    world.calls("anna") { _ in throw AppError(.authentication, "nobody is signed in") }, "anna", queue)
                #expect(try await other.moods.log(.sad).isQueued)
                #expect(try await world.drain(queue).ended == 1)
                #expect(try await world.owner.int("select count(*) from millrace.mood where person = 'anna'") == 1)
                // Signing out gives the token back; that takes a sign-in.
                isSignedIn.withLock { $0 = true }
                try await world.serving { try await queue.unregister() }
                #expect(try await world.owner.int("select count(*) from millrace.sync_device") == 0)
                _ = anna
            }
        }
    }

    @Test func `one refused operation holds back no other, and says why`() async throws {
        try await AppWorld.with { world in
            try await world.withQueue("anna") { anna, queue, _ in
                let strange = QueuedOperation("mood_log", ["person": "ben", "color": "happy"])
                let unknown = QueuedOperation("no_such_door", [:])
                try await queue.add(strange)
                try await queue.add(unknown)
                let mood = NewMood(.happy)
                #expect(try await anna.moods.log(mood).isQueued)
                var outcomes = await queue.outcomes().makeAsyncIterator()
                #expect(try await world.drain(queue) == OfflineQueue.Report(ended: 3, waiting: 0))
                let (first, second, third) = (await outcomes.next(), await outcomes.next(), await outcomes.next())
                #expect(first?.operation == strange && first?.word == .refused)
                #expect(first?.error?.kind == .permissionDenied && first?.error?.userMessage.isEmpty == false)
                #expect(second?.operation == unknown && second?.word == .refused && second?.error?.field == "op")
                #expect(third?.operation.id == mood.id && third?.word == .applied)
            }
        }
    }

    @Test func `a quota that is used up is told with its numbers, also later`() async throws {
        try await AppWorld.with { world in
            try await world.owner.run(
                """
                select millrace.own_notice_schedule('anna', 'water', 'w-' || n, now() + interval '1 day', actor => 'anna')
                  from generate_series(1, 50) n
                """)
            try await world.withQueue("anna") { anna, queue, _ in
                let notice = OwnNotice("water", key: "one more", at: Date(timeIntervalSinceNow: 7200))
                #expect(try await anna.notifications.schedule(notice).isQueued)
                var outcomes = await queue.outcomes().makeAsyncIterator()
                let report = try await world.drain(queue)
                #expect(report.ended == 1)
                let outcome = await outcomes.next()
                #expect(outcome?.word == .refused && outcome?.error?.kind == .resourceExhausted)
                #expect(outcome?.error?.quota?.limit == 50)
                let reset = outcome?.error?.quota?.resetDate
                #expect((reset ?? .distantPast) > Date())
            }
        }
    }

    @Test func `more than one batch is told in order`() async throws {
        try await AppWorld.with { world in
            try await world.withQueue("anna") { _, queue, _ in
                let count = OfflineQueue.batch + 7
                for number in 0..<count {
                    try await queue.add(
                        QueuedOperation(
                            "person_profile", ["person": "anna", "display_name": .string("Anna \(number)")]))
                }
                #expect(try await world.drain(queue).ended == count)
                #expect(
                    try await world.owner.value("select display_name from millrace.profile where person = 'anna'")
                        == "Anna \(count - 1)")
                #expect(try await world.owner.int("select count(*) from millrace.sync_done") == count)
            }
        }
    }

    @Test func `a running queue tells by itself what was added, before and after the gateway was away`() async throws {
        try await AppWorld.with { world in
            try await world.withQueue("anna") { anna, queue, _ in
                let running = Task { try await queue.run() }
                _ = try await anna.moods.log(.tired)
                try await world.serving {
                    try await eventually("the queue is empty") { await queue.pending.isEmpty }
                    try await queue.add(QueuedOperation("mood_log", ["person": "anna", "color": "calm"]))
                    try await eventually("the queue is empty again") { await queue.pending.isEmpty }
                }
                running.cancel()
                _ = try? await running.value
                #expect(try await world.owner.int("select count(*) from millrace.mood where person = 'anna'") == 2)
            }
        }
    }

    @Test func `more than the gateway takes at once is told in parts, after the pauses that it asks for`() async throws
    {
        try await AppWorld.with(rates: "operations=20:520,address=100000:100000") { world in
            let pauses = Locked<[Duration]>([])
            let calls = world.calls("anna", asked: { pause in pauses.withLock { $0.append(pause) } })
            try await world.withQueue("anna", calls) { _, queue, _ in
                for _ in 0..<640 {
                    try await queue.add(QueuedOperation("mood_log", ["person": "anna", "color": "calm"]))
                }
                let running = Task { try await queue.run() }
                try await world.serving {
                    try await eventually("all of them are told") { await queue.pending.isEmpty }
                }
                running.cancel()
                _ = try? await running.value
                #expect(try await world.owner.int("select count(*) from millrace.sync_done") == 640)
                // Its own pauses are no longer than a twentieth of a second.
                #expect(pauses.value.contains { $0 >= .seconds(1) }, "\(pauses.value)")
            }
        }
    }

    @Test func `a check-in is told although there is no room for what waits with it`() async throws {
        // So slow that nothing comes back while a busy machine runs this.
        try await AppWorld.with(rates: "operations=0.001:160,address=100000:100000") { world in
            try await arm(world)
            try await world.withQueue("anna") { anna, queue, _ in
                func log(_ count: Int) async throws {
                    for _ in 0..<count {
                        try await queue.add(QueuedOperation("mood_log", ["person": "anna", "color": "calm"]))
                    }
                }
                // A push that a busy machine does not end in its time is cut, and what comes again counts again.
                for _ in 0..<5 {
                    try await log(30)
                    #expect(try await world.drain(queue).ended == 30)
                }
                try await log(60)
                #expect(try await anna.checkIns.checkIn().isQueued)
                let error = try await failure(as: AppError.self) { _ = try await world.drain(queue) }
                #expect(error?.errorClass == .throttled && error?.retryAfter != nil, "\(String(describing: error))")
                #expect(await queue.pending.count == 60)
                #expect(try await world.owner.int("select count(*) from millrace.sync_done where op = 'check_in'") == 1)
            }
        }
    }

    @Test func `a directory of another person is refused`() async throws {
        try await AppWorld.with { world in
            try await world.withQueue("anna") { _, queue, directory in
                await queue.close()
                let error = try await failure(as: AppError.self) {
                    _ = try await OfflineQueue(directory: directory, person: "ben", calls: world.calls("ben"))
                }
                #expect(error?.kind == .alreadyExists && error?.message.contains("another person") == true)
            }
        }
    }
}
