import MillraceQueues
import Testing

@testable import Workers

/// What a worker gathers of its failures before it tells them.
@Suite struct FailureTalliesTests {
    private static func end(_ id: Int64, _ error: String?, _ outcome: Outcome = .retried) -> Ended {
        Ended(job: claimed(id), outcome: outcome, error: error)
    }

    @Test(arguments: [
        ("timed out after 31 s", "timed out after # s"),
        ("attempt 3 of 20: timed out after 31 s", "timed out after # s"),
        ("job 3f2504e0-4f89-11d3-9a0c-0305e82c3301 is gone", "job # is gone"),
        ("key deadbeef1 and deadbeef, a1 and 12ab", "key # and deadbeef, a# and #ab"),
        ("<Bob.X@mail.example> said no; b@c", "<<address>> said no; <address>"),
        ("mention @ noon, @home", "mention @ noon, @home"),
        ("größe 7 überschritten\nat line 12", "größe # überschritten"), ("", ""),
    ])
    func `errors that differ in numbers, ids and addresses are alike`(error: String, likeness: String) {
        #expect(FailureTallies.likeness(error) == likeness)
    }

    @Test func `similar failures of a queue and kind are one group, dead ones among them`() {
        var failures = FailureTallies()
        failures.add(Self.end(1, "no order 1"))
        failures.add(Self.end(2, "attempt 5 of 5: no order 2", .dead))
        failures.add(Self.end(1, "no order 1"))
        failures.add(Self.end(3, nil, .succeeded))
        failures.add(Self.end(4, "boom"))
        let told = failures.take().sorted { $0.failed > $1.failed }
        #expect(told.map(\.failed) == [3, 1] && told.map(\.dead) == [1, 0])
        #expect(told[0].error == "no order 1" && told[0].jobs == [1, 2] && told[0].lo == 1 && told[0].hi == 2)
        #expect(failures.isEmpty)
    }

    @Test func `beyond a hundred groups errors are alike by their plain words, and beyond as many they are all alike`()
    {
        var failures = FailureTallies()
        func error(_ n: Int64) -> String {
            "error " + String(repeating: "x", count: Int(n % 19)) + " " + String(repeating: "y", count: Int(n / 19))
        }
        for n in 1...250 as ClosedRange<Int64> { failures.add(Self.end(n, error(n), n % 2 == 0 ? .dead : .retried)) }
        let told = failures.take()
        #expect(told.count == 2 * FailureTallies.most + 1)
        #expect(told.reduce(0) { $0 + $1.failed } == 250 && told.reduce(0) { $0 + $1.dead } == 125)
        let rest = told.filter { $0.error == nil }
        #expect(rest.map(\.failed) == [50] && rest.first?.jobs.count == FailureTally.mostJobs)
        #expect(rest.first?.lo == 201 && rest.first?.hi == 250)
    }

    @Test func `one cause with an identifier in each error stays one, however many fail in a beat`() {
        var failures = FailureTallies()
        for n in 1...5000 as ClosedRange<Int64> {
            let tail = String(n, radix: 36).uppercased()
            failures.add(Self.end(n, "No such customer: 'cus_Nf\(tail)frFe\(tail)Uf' (request req_Q\(tail)w\(tail)Er)"))
        }
        failures.add(Self.end(5001, "the printer is out of paper"))
        let told = failures.take()
        #expect(told.count == FailureTallies.most + 2 && told.allSatisfy { $0.error != nil })
        #expect(told.reduce(0) { $0 + $1.failed } == 5001)
        #expect(told.filter { $0.error == "the printer is out of paper" }.map(\.failed) == [1])
    }

    @Test func `what a beat could not tell comes back behind what has failed since`() {
        var failures = FailureTallies()
        for n in 1...25 as ClosedRange<Int64> { failures.add(Self.end(n, "no order \(n)")) }
        let lost = failures.take()
        failures.add(Self.end(30, "no order 30", .dead))
        failures.putBack(lost)
        let told = failures.take()
        #expect(told.count == 1 && told[0].failed == 26 && told[0].dead == 1)
        #expect(told[0].jobs == [30] + (7...25).reversed() && told[0].lo == 1 && told[0].hi == 30)
    }
}
