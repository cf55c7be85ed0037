import CommandKit
import Foundation
import Glibc
import LoadKit
import Postgres
import Synchronization
import Threads

/// Sends offline batches to a real gateway, in order and in disorder, and compares what is there in the end.
struct OfflineWorld: Sendable {
    struct Tally: Sendable {
        var runs = 0
        var operations = 0
        var refused = 0
        var repeated = 0
        /// Requests that got no answer because the gateway was killed, and were sent again.
        var lost = 0
        private(set) var wrong = 0
        /// The first of them.
        private(set) var faults: [String] = []

        mutating func fault(_ what: String) {
            wrong += 1
            if faults.count < 20 { faults.append(what) }
        }

        mutating func add(_ other: Tally) {
            wrong += other.wrong
            runs += other.runs
            operations += other.operations
            refused += other.refused
            repeated += other.repeated
            lost += other.lost
            faults = Array((faults + other.faults).prefix(20))
        }
    }

    let ground: GatewayGround
    let port: UInt16
    let seed: UInt64

    static func reference(_ run: Int) -> String { "in-order-\(run)" }
    static func disorder(_ run: Int) -> String { "disorder-\(run)" }

    /// A zone in which it is afternoon: what happened in the six hours before is of today there, whatever the time of this run. What belongs to a
    /// day that has passed is refused.
    static func zone(at now: Date) -> String {
        let hour = Int(now.timeIntervalSince1970) / 3600 % 24
        let ahead = min(14, 15 - hour)
        return ahead > 0 ? "Etc/GMT-\(ahead)" : "Etc/GMT+\(-ahead)"  // their signs are turned round
    }

    /// Families and watches for all runs.
    func prepare(runs: Int, on connection: Connection) async throws {
        try await connection.execute(
            """
            select millrace.family_create('family of ' || p, $2), millrace.family_join('family of ' || p, p, 'teen')
              from generate_series(0, $1 - 1) n, unnest(array['in-order-' || n, 'disorder-' || n]) p
            """, [.int4(Int32(runs)), .text(Self.zone(at: Date()))], deadline: .seconds(300))
        try await connection.execute(
            """
            insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
            select p, '7 days', '5 min', '{}', 'UTC', 'armed', d, d + interval '7 days', d + interval '7 days', d
              from generate_series(0, $1 - 1) n, unnest(array['in-order-' || n, 'disorder-' || n]) p, (select date_trunc('hour', millrace.now() - interval '9 hours') as d) x
            on conflict (person) do nothing
            """, [.int4(Int32(runs))], deadline: .seconds(300))
    }

    // MARK: sending

    func run(_ number: Int, now: Int) -> (tally: Tally, batch: OfflineBatch) {
        let batch = OfflineBatch(seed: seed &+ UInt64(number), now: now)
        var tally = Tally()
        tally.runs = 1
        tally.operations = batch.operations.count
        let ordered = batch.operations.sorted { $0.at < $1.at }
        send(ordered, batch, by: "phone-1", of: Self.reference(number), &tally)

        var random = SeededChoices(seed: seed &+ 31 &* UInt64(number + 1))
        let mixed = batch.operations.shuffled(using: &random)
        let cut = Int.random(in: 0...mixed.count, using: &random)
        // Both parts hold some of the other, so the same operation is sent by two devices at once.
        let overlap = mixed.filter { _ in random.chance(0.3) }
        let person = Self.disorder(number)
        let parts = [Array(mixed[..<cut]) + overlap, (overlap + mixed[cut...]).shuffled(using: &random)]
        let second = Second()
        Thread.start(name: "gateway-device") {
            var mine = Tally()
            send(parts[1], batch, by: "phone-2", of: person, &mine)
            second.tally.withLock { $0 = mine }
        }
        send(parts[0], batch, by: "phone-1", of: person, &tally)
        while true {
            if let theirs = second.tally.withLock({ $0 }) {
                tally.add(theirs)
                break
            }
            usleep(500)
        }
        // The app comes back and hands everything in again.
        var again = Tally()
        send(batch.operations.shuffled(using: &random), batch, by: "phone-2", of: person, &again, isRepeated: true)
        tally.add(again)
        return (tally, batch)
    }

    /// What the second device came to.
    private final class Second: Sendable {
        let tally = Mutex<Tally?>(nil)
    }

    /// Until each operation has an answer that is final.
    private func send(
        _ operations: [OfflineBatch.Operation], _ batch: OfflineBatch, by device: String, of person: String,
        _ tally: inout Tally, isRepeated: Bool = false
    ) {
        let client = GatewayClient(port: port)
        let token = ground.token(person)
        var left = operations
        for _ in 0..<600 where !left.isEmpty {
            let body: JSONValue = [
                "device": .string(device), "ops": .array(left.map { batch.json($0, person: person) }),
            ]
            let answer = client.send("POST", "/v1/sync", token: token, body: body.compact)
            guard answer.status == 200, let results = answer.json?["results"]?.items, results.count == left.count else {
                if answer.status == 0 || answer.status == 503 || answer.status == 504 {
                    tally.lost += 1
                    usleep(50_000)
                    continue
                }
                tally.fault("\(person): the batch was answered \(answer.status): \(answer.text.prefix(500))")
                return
            }
            var again: [OfflineBatch.Operation] = []
            for (operation, result) in zip(left, results) {
                if result["class"]?.text == "transient" {
                    again.append(operation)
                } else {
                    judge(operation, result, of: person, &tally, isRepeated: isRepeated)
                }
            }
            left = again
            if !left.isEmpty { usleep(20_000) }
        }
        if !left.isEmpty { tally.fault("\(person): \(left.count) operations got no final answer") }
    }

    private func judge(
        _ operation: OfflineBatch.Operation, _ result: JSONValue, of person: String, _ tally: inout Tally,
        isRepeated: Bool
    ) {
        let outcome = result["outcome"]?.text ?? "none"
        // Of an operation that is older than what is in force nothing is carried out, be it good or bad.
        let isPast = result["result"]?["superseded"] == .bool(true) && !operation.args.contains { $0.0 == "person" }
        let allowed: Set<String> =
            operation.isRefused && isPast
            ? ["applied", "same"] : operation.isRefused ? ["refused"] : isRepeated ? ["same"] : ["applied", "same"]
        if !allowed.contains(outcome) {
            tally.fault(
                "\(person): \(batchLine(operation)) was \(outcome), not \(allowed.sorted().joined(separator: " or ")): \(result.compact)"
            )
        }
        if outcome == "refused", result["class"]?.text == nil || result["message"]?.text == nil {
            tally.fault("\(person): a refusal without class or message: \(result.compact)")
        }
        let id = OfflineBatch.id(operation.number, of: person)
        if result["id"]?.text?.lowercased() != id {
            tally.fault("\(person): answers are not in the order given")
        }
        tally.refused += outcome == "refused" ? 1 : 0
        tally.repeated += outcome == "same" ? 1 : 0
    }

    private func batchLine(_ operation: OfflineBatch.Operation) -> String {
        "\(operation.op) at \(operation.at) \(JSONValue.object(operation.args.map { .init(key: $0.0, value: $0.1) }).compact)"
    }

    // MARK: the end

    /// What must be the same, whatever the order: ids and times of writing are each person's own. So are points for the day's quest, for
    /// each family has another.
    func compare(_ number: Int, _ batch: OfflineBatch, on connection: Connection) async throws -> [String] {
        let states = try await connection.query(
            """
            select p, (select to_jsonb(w) - array['person', 'wake_at', 'created_at'] from millrace.watch w where w.person = p)::text,
                   (select jsonb_agg(jsonb_build_array(m.color, m.emoji, m.at) order by m.at) from millrace.mood m where m.person = p)::text,
                   jsonb_build_object(
                       'hobbies', (select jsonb_agg(jsonb_build_array(h.folded, h.fact) order by h.folded) from millrace.hobby h where h.person = p),
                       'profile', (select to_jsonb(f) - array['person', 'changed_at'] from millrace.profile f where f.person = p),
                       'preferences', (select to_jsonb(f) - array['person', 'changed_at'] from millrace.notice_preference f where f.person = p),
                       'notices', (select jsonb_agg(jsonb_build_array(n.key, n.due_at, n.data) order by n.key) from millrace.notice n
                                    where n.person = p and n.kind = 'reminder' and n.status not in ('cancelled')),
                       'points', (select sum(x.delta) from millrace.points_ledger x where x.person = p and x.reason <> 'quest'))::text,
                   (select w.last_checked_in = $3::timestamptz from millrace.watch w where w.person = p),
                   (select count(*) from millrace.mood m where m.person = p)
              from unnest(array[$1, $2]) with ordinality o(p, n) order by o.n
            """,
            [
                .text(Self.reference(number)), .text(Self.disorder(number)), .text(batch.lastCheckIn),
            ], deadline: .seconds(60)
        ) { row throws(PostgresError) in
            (
                who: try row.string(0), watch: row.optionalString(1) ?? "", moods: row.optionalString(2) ?? "",
                rest: try row.string(3), isInForce: try row.bool(4), count: Int(try row.int(5))
            )
        }
        guard states.count == 2 else { return ["run \(number) has no end"] }
        var faults: [String] = []
        let place = "seed \(seed + UInt64(number))"
        for state in states {
            if !state.isInForce {
                faults.append(
                    "\(place): the check-in of \(batch.lastCheckIn ?? "?") is not in force for \(state.who): \(state.watch)"
                )
            }
            if state.count != batch.moods {
                faults.append("\(place): \(state.who) has \(state.count) moods instead of \(batch.moods)")
            }
        }
        let (one, other) = (states[0], states[1])
        for (what, first, second) in [
            ("watch", one.watch, other.watch), ("moods", one.moods, other.moods), ("rest", one.rest, other.rest),
        ] where first != second {
            faults.append("\(place): the \(what) differs:\n  in order: \(first)\n  disorder: \(second)")
        }
        return faults
    }
}
