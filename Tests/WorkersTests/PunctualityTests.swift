import Calendars
import MillraceJobs
import MillraceQueues
import TestSupport
import Testing

@testable import Workers

@Suite struct PunctualityTests {
    private func plan(
        _ catchUp: Schedule.CatchUp, of expression: String = "0 * * * *", planned: Int64? = nil, from: Int64 = 0,
        now: Int64, anchor: Int64 = 0
    ) throws -> FirePlan {
        let punctuality = FiringRules(
            timetable: try Timetable(expression), zone: .utc, anchor: anchor, catchUp: catchUp)
        return try #require(punctuality.plan(planned: planned, from: from, now: now))
    }

    private let hour: Int64 = 3600
    private let everyWay: [Schedule.CatchUp] = [.none, .latest, .all()]

    @Test func `without a next time the first one after its beginning is planned`() throws {
        for way in everyWay {
            #expect(try plan(way, from: 100, now: 200) == FirePlan(fires: [], next: hour))
            // Time may have passed before any worker came.
            #expect(try plan(way, from: 100, now: hour + 5) == FirePlan(fires: [hour], next: 2 * hour))
        }
    }

    @Test func `not a second early`() throws {
        for way in everyWay {
            #expect(try plan(way, planned: hour, now: hour - 1) == FirePlan(fires: [], next: hour))
            #expect(try plan(way, planned: hour, now: hour) == FirePlan(fires: [hour], next: 2 * hour))
        }
    }

    @Test func `a minute late is late, and not missed`() throws {
        #expect(try plan(.none, planned: hour, now: hour + 60) == FirePlan(fires: [hour], next: 2 * hour))
        #expect(
            try plan(.none, planned: hour, now: hour + 61)
                == FirePlan(fires: [], missed: .init(first: hour, last: hour, count: 1), next: 2 * hour))
        // Half the time to the next one, where that is less.
        #expect(try plan(.none, of: "* * * * *", planned: 60, now: 90) == FirePlan(fires: [60], next: 120))
        #expect(
            try plan(.none, of: "* * * * *", planned: 60, now: 91)
                == FirePlan(fires: [], missed: .init(first: 60, last: 60, count: 1), next: 120))
        // But never less than five seconds: of a second's schedule nothing is lost in a short stall.
        #expect(
            try plan(.none, of: "every 1s", planned: 101, now: 106)
                == FirePlan(fires: [101, 102, 103, 104, 105, 106], next: 107))
    }

    @Test func `after three hours each way does what it says`() throws {
        let now = 4 * hour + 120
        let all = [hour, 2 * hour, 3 * hour, 4 * hour]
        #expect(
            try plan(.none, planned: hour, now: now)
                == FirePlan(fires: [], missed: .init(first: hour, last: 4 * hour, count: 4), next: 5 * hour))
        #expect(
            try plan(.latest, planned: hour, now: now)
                == FirePlan(
                    fires: [4 * hour], missed: .init(first: hour, last: 3 * hour, count: 3), next: 5 * hour))
        #expect(try plan(.all(), planned: hour, now: now) == FirePlan(fires: all, next: 5 * hour))
        #expect(
            try plan(.all(limit: 3), planned: hour, now: now)
                == FirePlan(
                    fires: Array(all.suffix(3)), missed: .init(first: hour, last: hour, count: 1), next: 5 * hour))
    }

    @Test func `back right on time, the missed ones are still missed`() throws {
        let now = 4 * hour + 2
        #expect(
            try plan(.none, planned: hour, now: now)
                == FirePlan(
                    fires: [4 * hour], missed: .init(first: hour, last: 3 * hour, count: 3), next: 5 * hour))
        // The time that has just come makes good for them.
        #expect(
            try plan(.latest, planned: hour, now: now)
                == FirePlan(
                    fires: [4 * hour], missed: .init(first: hour, last: 3 * hour, count: 3), next: 5 * hour))
    }

    @Test func `an interval goes on from the times it had, however late`() throws {
        #expect(
            try plan(.latest, of: "every 15m", planned: 1000 + 900, now: 1000 + 1234, anchor: 1000)
                == FirePlan(fires: [1900], next: 2800))
    }

    @Test func `years of missed seconds are counted so far and no further`() throws {
        let now: Int64 = 3 * 365 * 86_400
        let all = try plan(.all(limit: 1000), of: "* * * * * *", planned: 60, now: now)
        #expect(all.fires == Array((now - 999)...now))
        #expect(all.missed == .init(first: 60, last: now - 1000, count: FiringRules.countLimit))
        #expect(all.next == now + 1)
        let none = try plan(.none, of: "* * * * * *", planned: 60, now: now)
        #expect(none.missed?.last == now - 6 && none.fires.count == 6)
    }

    /// Against the plainest way to say it: walk all times, sort them out.
    @Test func `whatever the moment, each time is a fire, missed, or still to come, once`() throws {
        var random = SeededRandom(7)
        let expressions = ["*/7 * * * *", "every 40s", "0 3 * * *", "* * * * * *", "*/10 * * * * *", "0 0 1 * *"]
        for _ in 0..<300 {
            let text = try #require(expressions.randomElement(using: &random))
            let timetable = try Timetable(text)
            let way = try #require(
                ([.none, .latest, .all(limit: 5)] as [Schedule.CatchUp]).randomElement(using: &random))
            let from = Int64.random(in: 0...10_000_000, using: &random)
            let first = try #require(timetable.next(after: from, in: .utc, anchor: 0))
            let now = first + Int64.random(in: 0...(text == "0 0 1 * *" ? 9_000_000 : 20_000), using: &random)
            let plan = try plan(way, of: text, planned: first, now: now)
            var passed: [Int64] = []
            var time = first
            while time <= now {
                passed.append(time)
                time = try #require(timetable.next(after: time, in: .utc, anchor: 0))
            }
            #expect(plan.next == time)
            #expect(Array(passed.suffix(plan.fires.count)) == plan.fires)
            let missed = passed.dropLast(plan.fires.count)
            #expect(plan.missed?.count ?? 0 == missed.count)
            #expect(plan.missed?.first == missed.first && plan.missed?.last == missed.last)
            switch way {
            case .none: break
            case .latest: #expect(plan.fires.last == passed.last && (missed.isEmpty || plan.fires.count == 1))
            case .all: #expect(plan.fires.count == min(5, passed.count))
            }
        }
    }
}
