import CommandKit
import Postgres

/// The result of a wave, from the provider's ledger and the tables, compared with the promises. It makes no queries, so that tests can give
/// it wrong stories.
struct StrikeJudge: Sendable {
    struct Alarm: Sendable {
        var id: String
        var person: String
        var state: String
        /// The expiry that it stands for, in seconds since 1970.
        var expired: Double
        var raised: Double
        var acknowledged: Double?
        var acknowledgedBy: String?
    }

    /// One sending, as the tables have it.
    struct Telling: Sendable {
        var alarm: String
        var notice: String
        /// told, or told_acknowledged and the like.
        var what: String
        var contact: String
        var channel: String
        var step: Int
        var round: Int
        var at: Double
        var status: String
        /// How often the table says that it may have come twice.
        var duplicates: Int
    }

    /// An address is one contact's by one channel.
    struct Place: Sendable, Hashable {
        var person: String
        var contact: String
        var channel: String
        var step: Int
    }

    struct Finding: Sendable, Equatable {
        var rule: String
        var detail: String
    }

    struct Verdict: Sendable {
        var alarms = 0
        var notices = 0
        var duplicates = 0
        /// The longest from an expiry to the first notice that the provider took, in seconds.
        var latest = 0.0
        var findings: [Finding] = []
    }

    var due: [String: Double] = [:]
    /// The people who must be missed.
    var missed: [String] = []
    /// The answered check-ins of the others.
    var seen: [String: StrikeWave.Answered] = [:]
    var alarms: [Alarm] = []
    var tellings: [Telling] = []
    var places: [String: Place] = [:]
    var entries: [StrikeProvider.Entry] = []
    /// The number of faults: one sending may have no more duplicates than that.
    var faults = 1
    /// False: the tables may lack what a lost primary knew.
    var tablesRemember = true

    func check() -> Verdict {
        var verdict = Verdict()
        verdict.alarms = alarms.count
        let byPlace = Dictionary(grouping: entries) { places[$0.to] }
        for person in missed { check(person, byPlace, &verdict) }
        for (person, answered) in seen.sorted(by: { $0.key < $1.key }) { check(person, answered, &verdict) }
        return verdict
    }

    private func check(_ person: String, _ byPlace: [Place?: [StrikeProvider.Entry]], _ verdict: inout Verdict) {
        func find(_ rule: String, _ detail: String) { verdict.findings.append(Finding(rule: rule, detail: detail)) }
        let end = due[person] ?? 0
        let own = alarms.filter { $0.person == person }
        guard let alarm = own.first else { return find("every missed check-in raises an alarm", person) }
        if own.count > 1 { find("a missed check-in raises one alarm", "\(person): \(own.count)") }
        if alarm.raised < end { find("no alarm before its time", "\(person) by \(end - alarm.raised) s") }
        let told = tellings.filter { $0.alarm == alarm.id && $0.what == "told" }
        let others = Set(tellings.filter { $0.alarm == alarm.id && $0.what != "told" }.map(\.notice))
        for place in places.values.filter({ $0.person == person }) {
            let taken = (byPlace[place] ?? []).filter { !others.contains($0.id) }
            verdict.notices += taken.count
            let notices = told.filter { $0.contact == place.contact && $0.channel == place.channel }
            guard let first = taken.map(\.at).min() else {
                find("every contact of a step is told", "\(place.contact) by \(place.channel)")
                continue
            }
            // A later step has its own time.
            if place.step == 1 { verdict.latest = max(verdict.latest, first - end) }
            let again = taken.count - max(1, notices.count)
            verdict.duplicates += max(0, again)
            if again > faults {
                find("no more duplicates than faults", "\(place.contact) by \(place.channel): \(again)")
            }
            guard tablesRemember else { continue }
            let counted = notices.reduce(0) { $0 + $1.duplicates }
            if again > counted {
                find(
                    "the tables count the duplicates", "\(place.contact) by \(place.channel): \(again), not \(counted)")
            }
            for one in notices where one.status != "accepted" {
                find("what was taken is written down", "\(place.contact) by \(place.channel) is \(one.status)")
            }
        }
        let ids = Set(entries.map(\.id))
        for one in tellings where one.alarm == alarm.id && one.status == "accepted" && !ids.contains(one.notice) {
            find("nothing is written down that was not taken", "\(one.contact) by \(one.channel)")
        }
        if alarm.state != "acknowledged" || alarm.acknowledgedBy != "\(person)-three" {
            find("an answer is kept", "\(person): \(alarm.state) by \(alarm.acknowledgedBy ?? "nobody")")
        } else if let at = alarm.acknowledged {
            for one in told where one.at > at { find("nobody is told when it is answered", one.contact) }
            for place in places.values where place.person == person && place.step == 1 {
                if !(byPlace[place] ?? []).contains(where: { others.contains($0.id) }) {
                    find("who was told hears that it is answered", "\(place.contact) by \(place.channel)")
                }
            }
        }
    }

    private func check(_ person: String, _ answered: StrikeWave.Answered, _ verdict: inout Verdict) {
        let own = alarms.filter { $0.person == person }
        if answered.wasInTime {
            let told = entries.contains { places[$0.to]?.person == person }
            if !own.isEmpty || told {
                verdict.findings.append(Finding(rule: "a check-in in time raises no alarm", detail: person))
            }
        } else if own.count > 1 || own.contains(where: { $0.state != "resolved" }) {
            verdict.findings.append(Finding(rule: "a late check-in ends its alarm", detail: person))
        }
    }
}

extension StrikeJudge {
    /// Reads everything in the tables about people whose names match.
    mutating func read(_ stem: String, on connection: Connection) async throws(PostgresError) {
        alarms = try await connection.query(
            """
            select id::text, person, state, extract(epoch from expired_at)::float8, extract(epoch from raised_at)::float8,
                   extract(epoch from acknowledged_at)::float8, acknowledged_by
              from millrace.alarm where person like $1 and cause = 'expired' order by raised_at
            """, [.text(stem)]
        ) { row throws(PostgresError) in
            Alarm(
                id: try row.string(0), person: try row.string(1), state: try row.string(2), expired: try row.double(3),
                raised: try row.double(4), acknowledged: row.optionalDouble(5), acknowledgedBy: row.optionalString(6))
        }
        tellings = try await connection.query(
            """
            select e.alarm::text, n.id::text, e.what, e.contact, e.channel, e.step, e.round, extract(epoch from e.at)::float8, n.status, n.duplicates
              from millrace.alarm a join millrace.alarm_event e on e.alarm = a.id and e.what like 'told%' join millrace.notice n on n.id = e.notice
             where a.person like $1
            """, [.text(stem)]
        ) { row throws(PostgresError) in
            Telling(
                alarm: try row.string(0), notice: try row.string(1), what: try row.string(2),
                contact: try row.string(3),
                channel: try row.string(4), step: Int(try row.int(5)), round: Int(try row.int(6)),
                at: try row.double(7), status: try row.string(8), duplicates: Int(try row.int(9)))
        }
        let known = try await connection.query(
            """
            select d.address, d.person, d.contact, d.channel, c.step from millrace.watch_address d
              join millrace.watch_contact c on c.person = d.person and c.contact = d.contact where d.person like $1
            """, [.text(stem)]
        ) { row throws(PostgresError) in
            (
                try row.string(0),
                Place(
                    person: try row.string(1), contact: try row.string(2), channel: try row.string(3),
                    step: Int(try row.int(4)))
            )
        }
        places = Dictionary(known) { first, _ in first }
    }
}
