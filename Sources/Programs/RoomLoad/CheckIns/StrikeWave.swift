import CommandKit
import FoundationEssentials
import LoadKit
import Postgres
import Synchronization
import Transfers

/// The people of one wave: those who miss their check-in, and those who check in shortly before the expiry. Each has three contacts: two in
/// the first step, one of them with two channels; the third is told when nobody has answered, and answers by its link.
struct StrikeWave: Sendable {
    struct Contact: Sendable {
        var name: String
        var step: Int
        var channels: [String]
    }

    static let contacts = [
        Contact(name: "one", step: 1, channels: ["sms", "voice"]), Contact(name: "two", step: 1, channels: ["sms"]),
        Contact(name: "three", step: 2, channels: ["sms"]),
    ]

    let number: Int
    /// How long before the expiry the second group checks in.
    static let margin = 0.6
    /// The number of people in each group.
    let people: Int
    /// How long the first step waits for an answer.
    let wait: Double

    var missed: [String] { (0..<people).map { "w\(number)-missed-\($0)" } }
    var seen: [String] { (0..<people).map { "w\(number)-seen-\($0)" } }
    /// The common beginning of all names, for like.
    var stem: String { "w\(number)-%" }

    /// Expiring `lead` seconds from now, one a hundredth of a second after the other. Returns when each is due, in seconds since 1970.
    func fill(lead: Double, spread: Double = 0.01, on connection: Connection) async throws(PostgresError) -> [String:
        Double]
    {
        let base = Int64(number) * 100_000
        let contacts = Self.contacts.flatMap { contact in
            contact.channels.map { (contact.name, contact.step, $0) }
        }
        let rows = try await connection.query(
            """
            with people as (
                select p.name, p.n, millrace.now() + make_interval(secs => $2 + $3 * p.n / 2) as due
                  from unnest($1::text[]) with ordinality p(name, n)
            ), watches as (
                insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
                select name, '1 hour', '5 min', '{}', 'UTC', 'armed', due - interval '1 hour', due, due, due from people
                returning person
            ), told as (
                select p.name as person, p.name || '-' || c.name as contact, c.step, c.channel, p.n, c.place
                  from people p, unnest($4::text[], $5::int[], $6::text[]) with ordinality c(name, step, channel, place)
            ), contacts as (
                insert into millrace.watch_contact (person, contact, step, wait, created_at)
                select distinct person, contact, step, make_interval(secs => case step when 1 then $7 else 3600 end), now() from told
            ), addresses as (
                insert into millrace.watch_address (ref, person, contact, channel, address, verified_at)
                select gen_random_uuid(), person, contact, channel, '+4915' || lpad(($8::bigint + n * 10 + place)::text, 10, '0'), millrace.now() from told
            )
            select name, extract(epoch from due)::float8 from people
            """,
            [
                .texts(zip(missed, seen).flatMap { [$0, $1] }), .float8(lead), .float8(spread),
                .texts(contacts.map(\.0)), .int4s(contacts.map { Int32($0.1) }), .texts(contacts.map(\.2)),
                .float8(wait), .int8(base),
            ], deadline: .seconds(60)
        ) { row throws(PostgresError) in (try row.string(0), try row.double(1)) }
        return Dictionary(rows) { first, _ in first }
    }

    /// A check-in that was answered.
    struct Answered: Sendable {
        /// When it counted, in seconds since 1970.
        var at: Double
        var wasInTime: Bool
    }

    /// Checks in every person of this wave just before they would be missed, and retries until there is an answer.
    /// A few may open their connection this many seconds ahead, because opening one on a busy machine may take longer than is left.
    func checkIn(
        _ due: [String: Double], ahead: Double = 0, in world: StrikeWorld
    ) async throws -> [String: Answered] {
        try await withThrowingTaskGroup(of: (String, Answered).self) { group in
            for person in seen {
                guard let end = due[person] else { continue }
                group.addTask {
                    var open: Connection?
                    if ahead > 0 {
                        try await Self.sleep(until: end - Self.margin - ahead)
                        open = try await world.connect("strike-caller")
                    }
                    try await Self.sleep(until: end - Self.margin)
                    let patience = ContinuousClock.now + .seconds(180)
                    while true {
                        do {
                            let connection =
                                if let open { open } else { try await world.connect("strike-caller") }
                            open = nil
                            // It counts as of the moment that it has the row, from which the new expiry is an hour away.
                            let at = try await connection.query(
                                "select extract(epoch from millrace.check_in($1, actor => $1) - interval '1 hour')::float8",
                                [.text(person)]
                            ) { row throws(PostgresError) in try row.double(0) }.first
                            await connection.close()
                            if let at { return (person, Answered(at: at, wasInTime: at < end)) }
                        } catch is PostgresError {
                            guard ContinuousClock.now < patience else { throw Failure("a check-in was never answered") }
                        }
                        try await Task.sleep(for: .milliseconds(50))
                    }
                }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    private static func sleep(until moment: Double) async throws {
        let early = moment - MachineClock.now()
        if early > 0 { try await Task.sleep(for: .seconds(early)) }
    }

    /// The third contacts answer by the links that they got, each until a worker has taken the answer. Ends when cancelled.
    func answer(_ addresses: Set<String>, in world: StrikeWorld) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            var pressed: Set<String> = []
            var seen = 0
            while true {
                let entries = world.provider.entries
                for entry in entries[seen...] where addresses.contains(entry.to) {
                    guard let link = Self.link(in: entry.text), pressed.insert(link).inserted else { continue }
                    group.addTask { try await Self.press(link, in: world) }
                }
                seen = entries.count
                try await Task.sleep(for: .milliseconds(50))
            }
        }
    }

    private static func link(in text: String) -> String? {
        text.split(whereSeparator: \.isWhitespace).first { $0.contains("/v1/alarms/") }.map(String.init)
    }

    private static func press(_ link: String, in world: StrikeWorld) async throws {
        guard let path = link.firstRange(of: "/v1/alarms/") else { return }
        let client = HTTPClient()
        var turn = 0
        while true {
            // Either worker will do: a contact would try again, and a front end would find the other worker.
            let place = "http://127.0.0.1:\(world.ports[turn % world.ports.count])" + link[path.lowerBound...]
            turn += 1
            var request = HTTPRequest("POST", place, body: .bytes(Array("answer=acknowledged".utf8)))
            request.headers.add("Content-Type", "application/x-www-form-urlencoded")
            request.limits.total = .seconds(10)
            request.wantsFreshConnection = true
            do throws(TransferError) {
                // A link from a lost database is not known to anybody any more.
                let status = try await client.send(request).status
                if status < 400 || status == 404 { return }
            } catch {
                try Task.checkCancellation()
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    /// The addresses of the contacts who answer.
    func answering(on connection: Connection) async throws(PostgresError) -> Set<String> {
        Set(
            try await connection.query(
                "select d.address from millrace.watch_address d where d.person = any ($1) and d.contact like '%-three'",
                [.texts(missed)]
            ) { row throws(PostgresError) in try row.string(0) })
    }

    /// Nothing more will happen: every alarm is looked after, and every notice has ended.
    func isAtRest(on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth(
            """
            select (select count(*) from millrace.alarm a where a.person = any ($1) and a.state in ('acknowledged', 'resolved')) >= cardinality($1::text[])
               and not exists (select from millrace.notice n join millrace.alarm_event e on e.notice = n.id join millrace.alarm a on a.id = e.alarm
                                where a.person like $2 and n.status in ('pending', 'attempting'))
               and not exists (select from millrace.watch w where w.person like $2 and w.wake_at <= millrace.now())
            """, [.texts(missed), .text(stem)]
        )
    }
}
