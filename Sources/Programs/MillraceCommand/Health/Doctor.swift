import Calendars
import CheckIns
import Encryption
import FoundationEssentials
import MillraceQueues
import Postgres
import Supervision

/// Checks one subject after the other. A subject that cannot be checked is a warning, and does not stop the others.
struct Doctor {
    let invocation: Invocation
    let connection: Connection

    /// Those of the program.
    let rooms: [Room]

    init(_ invocation: Invocation, _ connection: Connection, rooms: [Room]) {
        self.rooms = rooms
        self.invocation = invocation
        self.connection = connection
    }

    func examine() async -> [Check] {
        var checks = [
            Check(subject: .connection, result: .ok("connected to \(connection.options.summary)")),
            Check(subject: .serverVersion, result: Self.judge(version: Int(await connection.serverVersion))),
        ]
        checks.append(await look(.pooler) { () throws(PostgresError) in try await pooler() })
        checks.append(Check(subject: .timeZones, result: Self.judge(.system)))
        // nil: there is no schema to ask; each room is looked at as if it were there.
        let installed = try? await Queue.installedRooms(on: connection)
        func has(_ room: String) -> Bool { installed == nil || installed?[room] != nil }
        let ofRooms = rooms.filter { has($0.name) }.flatMap(\.checks)
        for one in ofRooms where !one.needsSchema { checks.append(await ask(one)) }
        let schema = await look(.schema) { () throws(PostgresError) in
            Self.judge(try await Queue.schemaState(on: connection))
        }
        checks.append(schema)
        checks.append(await look(.notifications) { () throws(PostgresError) in try await notifications() })
        checks += await server()
        checks += await replication()
        checks.append(await look(.roles) { () throws(PostgresError) in try await roles() })
        checks += await trust()
        if has("gateway") { checks += await gateway() }
        // A test clock is a problem of a schema that can be asked all the same.
        if case .problem(_, let advice) = schema.result, advice.contains("migrate") { return checks }
        checks.append(await look(.rights) { () throws(PostgresError) in try await rights() })
        checks.append(
            await look(.openTransactions) { () throws(PostgresError) in
                Self.judge(try await Queue.pins(on: connection))
            })
        checks += await dangers()
        checks.append(await look(.workers) { () throws(PostgresError) in try await workers() })
        checks.append(
            await look(.workerClocks) { () throws(PostgresError) in
                Self.judge(try await Queue.workers(on: connection))
            })
        checks.append(
            await look(.partitions) { () throws(PostgresError) in
                Self.judge(try await Queue.partitions(on: connection))
            })
        checks.append(
            await look(.deadRows) { () throws(PostgresError) in Self.judge(try await Queue.sizes(on: connection)) })
        checks.append(
            await look(.limits) { () throws(PostgresError) in
                Self.judge(strays: try await Queue.straySlots(on: connection, deadline: .seconds(10)).map(\.surplus))
            })
        checks.append(
            await look(.providers) { () throws(PostgresError) in
                Self.judge(try await Providers.list(on: connection))
            })
        if has("checkins") {
            checks.append(
                await look(.checkIns) { () throws(PostgresError) in
                    Self.judge(
                        try await CheckInAdmin.state(on: connection, deadline: .seconds(5)),
                        links: invocation.settings.links,
                        deadman: invocation.settings.text(.deadmanURL) != nil)
                })
        }
        checks.append(
            await look(.approvals) { () throws(PostgresError) in
                Self.judge(
                    asked: try await Queue.peopleAsked(on: connection), links: invocation.settings.links)
            })
        checks.append(
            await look(.encryptionKeys) { () throws(PostgresError) in
                Self.judge(
                    try await Queue.sealedKeys(cap: 10_000, on: connection), keys: invocation.settings.keys)
            })
        checks.append(
            await look(.rooms) { () throws(PostgresError) in
                Self.judge(try await RoomFinding.all(rooms.schemas, on: connection))
            })
        for one in ofRooms where one.needsSchema { checks.append(await ask(one)) }
        return checks
    }

    private func ask(_ one: RoomCheck) async -> Check {
        await look(one.subject) { () throws(PostgresError) in try await one.ask(invocation, connection) }
    }

    func look(_ subject: Subject, _ body: () async throws(PostgresError) -> Check.Result) async -> Check {
        await look(subject.rawValue, body)
    }

    private func look(_ subject: String, _ body: () async throws(PostgresError) -> Check.Result) async -> Check {
        do throws(PostgresError) {
            return Check(subject, result: try await body())
        } catch {
            let failure = DatabaseFailure(error)
            let other = "run millrace doctor as a role that may see it"
            let advice = error.sqlState == "42501" ? other : failure.hint ?? other
            return Check(
                subject,
                result: failure.exitCode == .schemaMismatch
                    ? .problem(failure.sentence, advice: advice)
                    : .warning("its state cannot be read: \(failure.sentence)", advice: advice))
        }
    }

    private func workers() async throws(PostgresError) -> Check.Result {
        Self.judge(
            try await Queue.workers(on: connection),
            waiting: try await Queue.depths(cap: QueueDepth.cap, on: connection, deadline: .seconds(10)),
            unknown: try await Queue.orphans(on: connection, deadline: .seconds(10)).map(\.kind))
    }

    private func pooler() async throws(PostgresError) -> Check.Result {
        let isPooled = await connection.isPooled
        let most = invocation.settings.connections
        if let path = invocation.settings.text(.waker) {
            return Self.judge(wakerAt: path, isPooled: isPooled, most: most)
        }
        if let most, !isPooled {
            return .ok("none in between; a worker with these settings has at most \(most) connections, and polls")
        }
        guard isPooled else { return .ok("none in between") }
        guard let direct = invocation.directOptions else {
            return .warning(
                "a transaction pooler stands in between: workers poll, and notice a dead worker after 30 s, not 5 s",
                advice: "set MILLRACE_DIRECT_URL to a way around it")
        }
        let other = try await Connection.open(direct)
        let isStillPooled = await other.isPooled
        await other.close()
        return isStillPooled
            ? .warning("MILLRACE_DIRECT_URL leads to a pooler too", advice: "give the server's own address there")
            : .ok("one in between, and MILLRACE_DIRECT_URL leads around it")
    }

    private static func judge(wakerAt path: String, isPooled: Bool, most: Int?) -> Check.Result {
        let between = isPooled ? "one in between" : "none in between"
        let few = most.map { "; a worker has at most \($0) connections" } ?? ""
        return WakerClient.answers(at: path)
            ? .ok("\(between)\(few), and the waker at \(path) wakes it")
            : .warning(
                "\(between)\(few), and no waker answers at \(path): workers poll",
                advice: "run millrace waker on this host, with the same MILLRACE_WAKER")
    }

    private func notifications() async throws(PostgresError) -> Check.Result {
        let listener: Connection
        if await connection.isPooled {
            guard let direct = invocation.directOptions else { return .ok("not used through a pooler") }
            listener = try await Connection.open(direct)
        } else {
            listener = connection
        }
        let channel = "millrace_doctor"
        let payload = "\(UInt64.random(in: 0 ... .max))"
        try await listener.listen(channel)
        let started = ContinuousClock.now
        try await Queue.notify(channel, payload, on: connection)
        while ContinuousClock.now - started < .seconds(2) {
            let heard = try await listener.notifications(until: started + .seconds(2))
            if heard.contains(where: { $0.channel == channel && $0.payload == payload }) {
                return .ok("heard our own after \(Humane.duration(ContinuousClock.now - started))")
            }
        }
        return .problem(
            "a notification to ourselves did not arrive within 2 s",
            advice: "something between us and the server drops them: set MILLRACE_DIRECT_URL")
    }

    private func server() async -> [Check] {
        let before = Date()
        do throws(PostgresError) {
            let facts = try await Queue.serverFacts(on: connection)
            let middle = before.addingTimeInterval(Date().timeIntervalSince(before) / 2)
            let summary =
                "role \(facts.role), database of \(Humane.bytes(facts.databaseBytes)), \(facts.connections) connections"
            return [Check(subject: .server, result: .ok(summary))]
                + Self.judge(facts, skew: facts.now.timeIntervalSince(middle)).map {
                    Check(subject: $0.0, result: $0.1)
                }
        } catch {
            return [await look(.server) { () throws(PostgresError) in throw error }]
        }
    }

    private func roles() async throws(PostgresError) -> Check.Result {
        let settings = invocation.settings
        let facts = try await Queue.roleFacts(
            [
                (settings.clientRole, "enqueue"), (settings.workerRole, "claim"), (settings.adminRole, "job_list"),
            ], on: connection)
        let missing = facts.filter { !$0.exists }.map(\.name)
        let closed = facts.filter { $0.exists && !$0.mayUse }.map(\.name)
        if !closed.isEmpty {
            return .problem("\(closed.joined(separator: ", ")) lack their grants", advice: "run: millrace migrate")
        }
        if missing.count == facts.count { return .ok("none; the schema's owner does everything") }
        if !missing.isEmpty {
            return .warning(
                "\(missing.joined(separator: ", ")) do not exist",
                advice: "millrace migrate --print-roles prints the SQL; then migrate again")
        }
        return .ok(facts.map(\.name).joined(separator: ", "))
    }

    private func rights() async throws(PostgresError) -> Check.Result {
        let wanted = [("enqueue", "enqueue"), ("claim", "work"), ("job_list", "operate")]
        let open = try await Queue.doors(wanted.map(\.0), on: connection)
        let may = wanted.filter { open.contains($0.0) }.map(\.1)
        return may.isEmpty
            ? .problem("this role may do nothing here", advice: "grant it one of the roles above")
            : .ok("this role may " + may.joined(separator: ", "))
    }
}
