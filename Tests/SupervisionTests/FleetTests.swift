import Clusters
import Faults
import MillraceQueues
import Postgres
import Supervision
import Synchronization
import Telemetry
import TestSupport
import Testing

/// Several supervisors on one database, as several worker processes are.
final class Fleet: Sendable {
    /// The provider's behaviour, for all workers or for one of them.
    struct Script: Sendable {
        var fault: Fault?
        var broken: Int?
        var calls = 0
        var atOnce = 0
        var peak = 0
    }

    let members: [Supervisor]
    let script = Mutex(Script())
    let results = Mutex<[[String: Int]]>([])

    init(_ count: Int, at options: ConnectionOptions?, _ change: (inout Supervisor.Options) -> Void = { _ in }) {
        members = (0..<count).map { index in
            var own = Supervisor.Options()
            own.database = options
            own.name = "worker-\(index)"
            own.breaker.window = .seconds(10)
            own.breaker.open = .seconds(600)
            own.breaker.rampStep = .milliseconds(100)
            change(&own)
            return Supervisor(own, log: .silent)
        }
        results.withLock { $0 = Array(repeating: [:], count: count) }
    }

    func set(_ fault: Fault?, broken: Int? = nil) {
        script.withLock {
            $0.fault = fault
            $0.broken = broken
        }
    }

    var calls: Int { script.withLock { $0.calls } }

    @discardableResult
    func call(_ index: Int) async -> String {
        let outcome: String
        do {
            try await members[index].call("mailer") { _ in
                let fault = self.script.withLock { script -> Fault? in
                    if script.broken == index { return Fault(.unavailable, code: "7", "no network") }
                    script.calls += 1
                    return script.fault
                }
                if let fault { throw fault }
            }
            outcome = "ok"
        } catch let refusal as CallRefusal {
            outcome = "refused \(refusal.why.rawValue)"
        } catch let fault as Fault {
            outcome = fault.kind.rawValue
        } catch {
            outcome = "\(error)"
        }
        results.withLock { $0[index][outcome, default: 0] += 1 }
        return outcome
    }

    /// Runs the fleet and its callers around `body`.
    func run(_ body: @escaping @Sendable (Fleet) async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, member) in members.enumerated() {
                group.addTask { await member.run() }
                group.addTask {
                    while !Task.isCancelled {
                        await self.call(index)
                        try? await Task.sleep(for: .milliseconds(10))
                    }
                }
            }
            group.addTask { try await body(self) }
            // The first to end is the body: the others go on until cancelled.
            try await group.next()
            group.cancelAll()
            while try await group.next() != nil {}
        }
    }
}

@Suite struct FleetTests {
    static func state(_ connection: Connection) async throws -> String? {
        try await connection.value(
            "select state from millrace.providers where provider = 'mailer' and class = 'default'")
    }

    static func allHaveCalled(_ connection: Connection, _ count: Int) async throws {
        try await eventually("it comes to step 1") {
            try await connection.value("select count(*)::text from millrace.provider_seen where ok > 2") == "\(count)"
        }
    }

    @Test func `what fails for all is opened for all, and only probes get through`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let fleet = Fleet(4, at: database.options) {
                $0.breaker.open = .milliseconds(400)
                $0.breaker.longestOpen = .milliseconds(400)
            }
            try await fleet.run { fleet in
                try await Self.allHaveCalled(connection, 4)
                fleet.set(Fault(.unavailable, code: "503", "down"))
                try await eventually("it comes to step 2") { try await Self.state(connection) != "closed" }
                let before = fleet.calls
                try await eventually("it comes to step 3") {
                    try await connection.value("select (max(generation) > 8)::text from millrace.provider_circuit")
                        == "true"
                }
                let calls = fleet.calls - before
                let rounds = try await connection.int(
                    "select count(*) from millrace.provider_event where to_state = 'probing'")
                #expect(rounds > 1)
                // Each period has two probes; and until the word has reached a worker, it makes the calls that it needs to open by itself.
                #expect(calls <= 2 * rounds + 4 * 3)
                fleet.set(nil)
                try await eventually("it comes to step 4") { try await Self.state(connection) == "ramping" }
                try await eventually("it comes to step 5") { try await Self.state(connection) == "closed" }
            }
            let events = try await connection.column(
                "select from_state || ' ' || to_state from millrace.provider_events order by generation")
            #expect(events.first == "closed open")
            #expect(events.suffix(3) == ["open probing", "probing ramping", "ramping closed"])
            let chain = events.map { $0.split(separator: " ") }
            #expect(zip(chain, chain.dropFirst()).allSatisfy { $0[1] == $1[0] })
        }
    }

    @Test func `one worker with a broken network opens for itself alone`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let fleet = Fleet(4, at: database.options)
            try await fleet.run { fleet in
                try await Self.allHaveCalled(connection, 4)
                fleet.set(nil, broken: 2)
                try await eventually("it comes to step 6") {
                    try await connection.value(
                        "select string_agg(worker, ',') from millrace.provider_workers('mailer') where vote = 'unavailable (7)'"
                    )
                        == "worker-2"
                }
                try await eventually("it comes to step 7") {
                    fleet.results.withLock { $0[2]["refused open"] ?? 0 } > 50
                }
                #expect(try await Self.state(connection) == "closed")
            }
            let results = fleet.results.withLock { $0 }
            #expect(results[2]["unavailable"] == 3)
            for other in [0, 1, 3] { #expect(results[other].keys.sorted() == ["ok"]) }
        }
    }

    @Test func `a bad key opens for all at once, and says why`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let fleet = Fleet(4, at: database.options)
            try await fleet.run { fleet in
                try await Self.allHaveCalled(connection, 4)
                fleet.set(Fault(.authentication, code: "401 invalid_api_key", "the key is wrong"))
                try await eventually("it comes to step 8") { try await Self.state(connection) == "open" }
                for index in 0..<4 {
                    try await eventually("it comes to step 9") { await fleet.call(index) == "refused open" }
                }
            }
            #expect(
                try await connection.value("select reason from millrace.providers where provider = 'mailer'")
                    == "authentication (401 invalid_api_key)")
            #expect(try await connection.value("select (count(*) = 1)::text from millrace.provider_events") == "true")
        }
    }

    @Test func `an operator's word is heard by all, is on record, and ends by itself`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let fleet = Fleet(2, at: database.options)
            try await fleet.run { fleet in
                try await Self.allHaveCalled(connection, 2)
                #expect(
                    try await connection.value(
                        "select millrace.provider_force('mailer', 'open', 'maintenance', interval '20 s')::text")
                        == "true")
                try await eventually("it comes to step 10") {
                    let answers = await (fleet.call(0), fleet.call(1))
                    return answers == ("refused forced", "refused forced")
                }
                try await eventually("it comes to step 11") { try await Self.state(connection) == "closed" }
                for index in 0..<2 { try await eventually("it comes to step 12") { await fleet.call(index) == "ok" } }
                // Forced closed: failures open nothing.
                try await connection.run("select millrace.provider_force('mailer', 'closed', 'we know')")
                try await eventually("it comes to step 13") { try await Self.state(connection) == "forced_closed" }
                try await eventually("it comes to step 14") {
                    try await connection.value("select bool_and(generation > 3)::text from millrace.provider_seen")
                        == "true"
                }
                fleet.set(Fault(.unavailable, "down"))
                try await eventually("it comes to step 15") {
                    fleet.results.withLock { $0.allSatisfy { $0["unavailable", default: 0] > 20 } }
                }
                #expect(try await Self.state(connection) == "forced_closed")
                try await connection.run("select millrace.provider_force('mailer', 'auto', 'over')")
                try await eventually("it comes to step 16") { try await Self.state(connection) == "open" }
            }
            let events = try await connection.column(
                "select to_state || ' ' || reason from millrace.provider_events where class = 'default' order by generation limit 4"
            )
            #expect(
                events == [
                    "forced_open maintenance", "closed the time for which it was forced is over",
                    "forced_closed we know",
                    "closed over",
                ])
            for call in [
                "'Mail er', 'open', 'x'", "'mailer', 'shut', 'x'", "'mailer', 'open', ''", "'mailer', 'open', null",
                "'mailer', 'open', 'x', interval '0'", "'mailer', 'open', 'x', class => 'A B'",
            ] {
                #expect(
                    try await connection.refusal(of: "select millrace.provider_force(\(call))")?.sqlState == "22023",
                    "\(call)")
            }
        }
    }

    @Test func `with the database away calls go on, own breakers decide, and states agree again afterwards`()
        async throws
    {
        try await withCluster { cluster in
            let url = cluster.url()
            let connection = try await Connection.open(ConnectionOptions(location: url), name: "test")
            _ = try await Migrator.ofAllRooms().migrate(on: connection)
            let fleet = Fleet(3, at: ConnectionOptions(location: url)) { $0.breaker.open = .milliseconds(300) }
            try await fleet.run { fleet in
                try await Self.allHaveCalled(connection, 3)
                await connection.close()
                try await cluster.stop(.immediate, deadline: .seconds(60))
                let before = fleet.calls
                try await eventually("it comes to step 17") { fleet.calls > before + 100 }
                fleet.set(Fault(.unavailable, "down"))
                for index in 0..<3 {
                    try await eventually("it comes to step 18") { await fleet.call(index) == "refused open" }
                }
                fleet.set(nil)
                for index in 0..<3 { try await eventually("it comes to step 19") { await fleet.call(index) == "ok" } }
                _ = try await cluster.start(deadline: .seconds(60))
                let again = try await Connection.open(ConnectionOptions(location: url), name: "test")
                try await eventually("it comes to step 20") {
                    try await again.value(
                        "select (count(*) = 3)::text from millrace.provider_seen where ok > 20 and seen_at > millrace.now() - interval '3 s'"
                    ) == "true"
                }
                #expect(try await Self.state(again) == "closed")
                await again.close()
            }
        }
    }

    @Test func `flags are the same in the database and in every process, and reach them`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run("select millrace.flag_set('new', 30, array['always'])")
            for key in (0..<300).map({ "user-\($0)" }) + ["always", "ü", "", "日本語"] {
                #expect(
                    try await connection.value("select millrace.flag_on('new', '\(key)')::text")
                        == "\(Flag(name: "new", percent: 30, always: ["always"]).isOn(key))", "\(key)")
            }
            #expect(try await connection.value("select millrace.flag_on('unknown', 'x')::text") == "false")
            let fleet = Fleet(2, at: database.options)
            try await fleet.run { fleet in
                for member in fleet.members {
                    try await eventually("it comes to step 21") { member.isOn("new", for: "always") }
                }
                try await connection.run("select millrace.flag_set('new', 100)")
                for member in fleet.members {
                    try await eventually("it comes to step 22") { member.isOn("new", for: "nobody") }
                }
            }
            for call in ["'x', 101", "'x', -1", "null, 1", "'x', null", "'x', 1, array[null]"] {
                #expect(
                    try await connection.refusal(of: "select millrace.flag_set(\(call))")?.sqlState == "22023",
                    "\(call)")
            }
        }
    }
}
