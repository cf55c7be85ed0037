import Postgres
import TestSupport
import Testing

/// A reader that sleeps, and writers that try to share its lock, as the functions of the schema do.
@Suite struct SleepLockTests {
    private static let rules = SleepLock.Rules(lock: 7)

    private static func withSessions(
        _ body: (_ reader: Connection, _ writer: Connection, _ other: Connection) async throws -> Void
    ) async throws {
        try await withDatabase(.empty) { database in
            let sessions = (try await database.connect(), try await database.connect(), try await database.connect())
            try await body(sessions.0, sessions.1, sessions.2)
            for session in [sessions.0, sessions.1, sessions.2] { await session.close() }
        }
    }

    private static func mustNotify(_ writer: Connection, at place: Int) async throws -> Bool {
        try await !writer.bool("select pg_try_advisory_xact_lock_shared(7, \(place))")
    }

    @Test func `writers notify at the places where a reader sleeps, and at no others`() async throws {
        try await Self.withSessions { reader, writer, _ in
            var lock = SleepLock(Self.rules, on: reader)
            #expect(try await lock.sleep(at: [1, 2]) == [1, 2])
            #expect(try await Self.mustNotify(writer, at: 1))
            #expect(try await Self.mustNotify(writer, at: 2))
            #expect(try await lock.sleep(at: [2, 3]) == [3], "it was asleep at 2 already")
            #expect(try await !Self.mustNotify(writer, at: 1))
            #expect(try await Self.mustNotify(writer, at: 2))
            #expect(try await Self.mustNotify(writer, at: 3))
            try await lock.leave()
            for place in 1...3 { #expect(try await !Self.mustNotify(writer, at: place)) }
        }
    }

    @Test func `a reader has a place only when each writer that need not notify has committed`() async throws {
        try await Self.withSessions { reader, writer, other in
            try await writer.run("begin")
            #expect(try await !Self.mustNotify(writer, at: 1))
            var lock = SleepLock(SleepLock.Rules(lock: 7, patience: .milliseconds(1)), on: reader)
            #expect(try await lock.sleep(at: [1, 2]) == [1, 2], "a look is due at 1 as well")
            #expect(lock.held == [2] && !lock.isWhole)
            try await writer.run("commit")
            #expect(try await lock.sleep(at: [1, 2]) == [1])
            #expect(lock.isWhole)
            #expect(try await Self.mustNotify(other, at: 1))
        }
    }

    @Test func `a writer that comes while a reader waits notifies, and an interrupted reader leaves nothing behind`()
        async throws
    {
        try await Self.withSessions { reader, writer, other in
            let process = try await reader.process()
            try await writer.run("begin")
            #expect(try await !Self.mustNotify(writer, at: 1))
            let rules = SleepLock.Rules(
                lock: 7, election: .eachPlace(8), patience: .milliseconds(1), waitsForLast: true)
            let waiting = Task {
                var lock = SleepLock(rules, on: reader)
                do throws(PostgresError) {
                    _ = try await lock.sleep(at: [1])
                } catch .cancelled {
                    try await lock.leave()
                    return true
                }
                return false
            }
            try await waitUntilBlocked(process, seenBy: other)
            #expect(try await Self.mustNotify(other, at: 1))
            reader.interruptNow()
            #expect(try await waiting.value)
            try await writer.run("commit")
            for lock in [7, 8] { #expect(try await other.bool("select pg_try_advisory_lock(\(lock), 1)")) }
        }
    }

    @Test func `one reader sleeps at each place, and the next one when it has left`() async throws {
        for election in [SleepLock.Rules.Election.once(8), .eachPlace(8)] {
            try await Self.withSessions { reader, _, other in
                var first = SleepLock(SleepLock.Rules(lock: 7, election: election), on: reader)
                var second = SleepLock(SleepLock.Rules(lock: 7, election: election), on: other)
                #expect(try await first.sleep(at: [1, 2]) == [1, 2])
                #expect(try await second.sleep(at: [1, 2]) == [])
                #expect(try await first.sleep(at: [1]) == [])
                let left: Set<Int32> = if case .once = election { [] } else { [2] }
                #expect(try await second.sleep(at: [1, 2]) == left)
                try await first.leave()
                #expect(try await second.sleep(at: [1, 2]) == Set([1, 2]).subtracting(left))
                #expect(second.held == [1, 2])
            }
        }
    }

    @Test func `a reader that is awake again does not begin to wait`() async throws {
        try await Self.withSessions { reader, writer, _ in
            try await writer.run("begin")
            #expect(try await !Self.mustNotify(writer, at: 1))
            let rules = SleepLock.Rules(lock: 7, patience: .milliseconds(1), waitsForLast: true)
            var lock = SleepLock(rules, on: reader) { begins in !begins }
            #expect(try await lock.sleep(at: [1]) == [1])
            #expect(lock.held.isEmpty)
        }
    }
}
