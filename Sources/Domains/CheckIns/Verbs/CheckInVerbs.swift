import CommandKit
import FoundationEssentials
import Postgres

extension Command {
    private static let person = Argument("person", help: "the person who is watched")

    static let checkinsList = Command(
        ["checkins", "list"],
        summary: "List the people who are watched",
        flags: [
            .single(
                "state", "STATE", .choice(["armed", "warned", "expired", "paused", "disarmed"]), environment: .none,
                help: "Only watches in this state."),
            .single(
                "limit", "N", .integer(1...500), environment: .none, fallback: "50", help: "Show at most this many."),
            .single("after", "PERSON", environment: .none, help: "Only people after this one."),
        ],
        examples: [Example("millrace checkins list --state expired", "whose check-in is missing")]
    ) { invocation in
        let parsed = invocation.parsed
        let limit = parsed.integer("limit") ?? 50
        let rows = try await invocation.withSchema { connection in
            try await CheckInAdmin.watches(
                state: parsed.string("state"), after: parsed.string("after"), page: limit, on: connection)
        }.map { try JSONValue.read($0) }
        invocation.console.list("check_ins", rows, table: CheckInTables.watches(rows))
        if rows.count == limit, invocation.console.format == .human, let last = rows.last?["person"]?.text {
            invocation.console.note("more may follow: --after \(last)")
        }
        return .done
    }

    static let checkinsShow = Command(
        ["checkins", "show"],
        summary: "Show a watch, its contacts, its open alarms and who is told of them",
        discussion: "An alarm for help can be open without a watch, and is shown as well.",
        arguments: [person],
        examples: [Example("millrace checkins show anna", "until when, and who would be told")]
    ) { invocation in
        let name = invocation.parsed.string("person") ?? ""
        let found = try await invocation.withSchema { try await CheckInAdmin.watch(name, on: $0) }
        guard let found else {
            throw Failure(
                .notFound, "nobody watches over \(DisplayWidth.harmless(name))", hint: "see millrace checkins list")
        }
        let watch = try JSONValue.read(found)
        invocation.console.show(watch) {
            if watch["state"]?.text == nil {
                invocation.console.print("no watch is armed for \(DisplayWidth.harmless(name))", .yellow)
            } else {
                invocation.console.print(CheckInTables.watches([watch]))
            }
            invocation.console.print()
            invocation.console.print(CheckInTables.contacts(watch["contacts"]?.items ?? []))
            if let alarms = watch["alarms"]?.items, !alarms.isEmpty {
                invocation.console.print()
                invocation.console.print(CheckInTables.alarms(alarms))
                for alarm in alarms { invocation.tellReach(of: alarm) }
            }
        }
        return .done
    }

    static let checkinsArm = Command(
        ["checkins", "arm"],
        summary: "Start watching a person",
        discussion: """
            At least one contact must have a confirmed address, so that somebody can be told. Arming counts as a check-in, \
            and replaces interval, warnings and zone.
            """,
        arguments: [person],
        flags: [
            .single(
                "every", "DURATION", .duration(.seconds(1) ... .seconds(86_400 * 31)), environment: .none,
                fallback: "1h",
                help: "The longest time between two check-ins."),
            .single(
                "grace", "DURATION", .duration(.zero ... .seconds(86_400)), environment: .none, fallback: "5m",
                help: "Minimum time left after shortening the interval."),
            .repeated(
                "warn", "DURATION", .duration(.seconds(1) ... .seconds(86_400 * 31)), environment: .none,
                help: "How long before the time is up the person is reminded; 10m if not given."),
            .single(
                "zone", "ZONE", environment: .none, fallback: "UTC", help: "The time zone of the times in messages."),
        ],
        examples: [Example("millrace checkins arm anna --every 2h --warn 15m --zone Europe/Berlin", "by hand")]
    ) { invocation in
        let parsed = invocation.parsed
        let name = parsed.string("person") ?? ""
        let warnings = parsed.durations("warn").map(\.wholeMilliseconds)
        let expiry = try await invocation.withSchema { connection in
            try await CheckInAdmin.call(
                """
                select to_json(millrace.check_in_arm($1, $2 * interval '1 millisecond', $3 * interval '1 millisecond',
                       array(select w * interval '1 millisecond' from unnest($4::bigint[]) w), $5, actor => $1)) #>> '{}'
                """,
                [
                    .text(name), .int8(parsed.duration("every")?.wholeMilliseconds ?? 0),
                    .int8(parsed.duration("grace")?.wholeMilliseconds ?? 0),
                    .int8s(warnings.isEmpty ? [600_000] : warnings), .text(parsed.string("zone")),
                ], on: connection)
        }
        return invocation.told(name, "check_in_expiration", expiry, "is watched over until")
    }

    static let checkinsDisarm = Command(
        ["checkins", "disarm"],
        summary: "Stop watching a person",
        discussion: "An open alarm stays open.",
        arguments: [person],
        flags: [.single("reason", "TEXT", environment: .none, help: "The reason, for the feed.")],
        examples: [Example("millrace checkins disarm anna --reason 'on holiday'", "nobody misses her check-ins")]
    ) { invocation in
        let name = invocation.parsed.string("person") ?? ""
        let reason = invocation.parsed.string("reason")
        let changed = try await invocation.withSchema { connection in
            try await CheckInAdmin.call(
                "select millrace.check_in_disarm($1, $2, actor => $1)::text", [.text(name), .text(reason)],
                on: connection)
        }
        invocation.console.show(["person": .string(name), "disarmed": .bool(changed == "true")]) {
            invocation.console.print(
                "\(DisplayWidth.harmless(name)) is \(changed == "true" ? "not watched over any more" : "disarmed already")"
            )
        }
        return .done
    }

    static let checkinsPause = Command(
        ["checkins", "pause"],
        summary: "Pause a person's check-ins for a while",
        arguments: [person],
        flags: [
            .single(
                "for", "DURATION", .duration(.seconds(1) ... .seconds(86_400 * 366)), environment: .none,
                help: "How long to pause."),
            .single(
                "until", "TIME", .custom(expects: InstantText.expectation, complaint: InstantText.complaint),
                environment: .none, help: "Pause until this time."),
        ],
        examples: [Example("millrace checkins pause anna --for 8h", "for the night; the interval starts when it ends")]
    ) { invocation in
        let parsed = invocation.parsed
        let name = parsed.string("person") ?? ""
        let span = parsed.duration("for")
        let until = try parsed.string("until").map { try InstantText.read($0) }
        guard (span == nil) != (until == nil) else { throw Failure(.misused, "give one of --for and --until") }
        let expiry = try await invocation.withSchema { connection in
            try await CheckInAdmin.call(
                """
                select to_json(millrace.check_in_pause($1, coalesce($2, millrace.now() + $3 * interval '1 millisecond'), actor => $1)) #>> '{}'
                """, [.text(name), .timestamp(until), .int8(span?.wholeMilliseconds)], on: connection)
        }
        return invocation.told(name, "check_in_expiration", expiry, "is expected to check in by")
    }

    static let checkinsCheckIn = Command(
        ["checkins", "check-in"],
        summary: "Check in for a person",
        discussion: """
            For somebody who is known to be safe. --at gives the time, if it lies between the last check-in and now \
            and is not older than a day; otherwise now counts. After the expiry it ends the alarm, and the contacts \
            are told.
            """,
        arguments: [person],
        flags: [
            .single(
                "at", "TIME", .custom(expects: InstantText.expectation, complaint: InstantText.complaint),
                environment: .none, help: "The time of the check-in; now if not given."), .place, .accuracy,
        ],
        examples: [
            Example("millrace checkins check-in anna", "prints the new expiry"),
            Example("millrace checkins check-in anna --place 48.137,11.575", "the next alarm of this day shows it"),
        ]
    ) { invocation in
        let name = invocation.parsed.string("person") ?? ""
        let at = try invocation.parsed.string("at").map { try InstantText.read($0) }
        let place = try invocation.parsed.place()
        let expiry = try await invocation.withSchema { connection in
            try await CheckInAdmin.checkIn(name, at: at, place: place, on: connection)
        }
        return invocation.told(name, "check_in_expiration", expiry, "is expected to check in by")
    }

    static let checkinsInterval = Command(
        ["checkins", "interval"],
        summary: "Change how often a person checks in",
        arguments: [
            person,
            Argument(
                "every", .one, .duration(.seconds(1) ... .seconds(86_400 * 31)), help: "the new interval, such as 30m"),
        ],
        examples: [
            Example("millrace checkins interval anna 30m", "from the last check-in on, but never sooner than the grace")
        ]
    ) { invocation in
        let name = invocation.parsed.string("person") ?? ""
        let every = invocation.parsed.duration("every")?.wholeMilliseconds
        let expiry = try await invocation.withSchema { connection in
            try await CheckInAdmin.call(
                "select to_json(millrace.check_in_set_interval($1, $2 * interval '1 millisecond', actor => $1)) #>> '{}'",
                [.text(name), .int8(every)], on: connection)
        }
        return invocation.told(name, "check_in_expiration", expiry, "is expected to check in by")
    }
}

extension Invocation {
    /// Prints who is told of an alarm; in red if nobody is.
    func tellReach(of alarm: JSONValue) {
        guard let sentence = alarm["sentence"]?.text else { return }
        let cause = alarm["cause"]?.text.map { "the alarm (\($0)): " } ?? ""
        console.print(
            cause + DisplayWidth.harmless(sentence), alarm["reaches_nobody"] == .bool(true) ? .red : .plain)
    }

    /// One value about a person, as a sentence or an object.
    func told(_ name: String, _ key: String, _ value: String?, _ words: String) -> ExitCode {
        console.show(["person": .string(name), key: JSONValue(value)]) {
            console.print("\(DisplayWidth.harmless(name)) \(value.map { "\(words) \($0)" } ?? "is not watched over")")
        }
        return .done
    }
}

extension InstantText {
    static let complaint: @Sendable (String) -> String? = { text in
        do throws(ValueRefusal) {
            _ = try read(text)
            return nil
        } catch {
            return error.complaint
        }
    }
}

extension Parsed {
    func durations(_ name: String) -> [Duration] {
        (flags[name]?.values ?? []).compactMap { value in
            guard case .duration(let duration) = value else { return nil }
            return duration
        }
    }
}

extension Duration {
    var wholeMilliseconds: Int64 { components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000 }
}
