import FoundationEssentials
import MillraceQueues

extension ValueKind {
    /// A point in time, or how long ago it was.
    static let past = ValueKind.custom(expects: "a time with its zone, or how long ago, such as 2h") { text in
        do throws(ValueRefusal) {
            _ = try Invocation.moment(text)
            return nil
        } catch {
            return error.complaint
        }
    }
}

extension JobFlags {
    /// Filters for failed jobs only: dead ones and those that wait for a retry. Not from the environment: a forgotten variable must not
    /// decide what is deleted.
    static let ofDead: [CommandFlag] = [
        .single(
            "error", "TEXT", environment: .none,
            help: "Only jobs whose last error contains this; upper and lower case do not matter."),
        .single(
            "since", "TIME", .past, environment: .none,
            help: "Only jobs whose last failure was at this time or later; 2h is two hours ago."),
        .single("until", "TIME", .past, environment: .none, help: "Only jobs whose last failure was before this time."),
    ]

    /// Whose jobs they are, and by which keys they are held. Not from the environment either.
    static let ofOwner: [CommandFlag] = [
        .single("tenant", "TENANT", environment: .none, help: "Only jobs of this tenant."),
        .single("unique", "KEY", environment: .none, help: "Only jobs with this unique key."),
        .single("limit-key", "KEY", environment: .none, help: "Only jobs with this limit key."),
    ]

    /// Why they failed, and what they are about.
    static let ofCause: [CommandFlag] = [
        .single(
            "group", "ID", .integer(1...Int.max), environment: .none,
            help: "Only jobs whose last error is in this group of millrace failures list."),
        .single(
            "field", "NAME=VALUE",
            .custom(expects: "a field and its value, such as order.id=42") { text in
                text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).count == 2
                    && text.first != "="
                    ? nil : "takes a field and its value, such as order.id=42"
            }, environment: .none, help: "Only jobs with this value in a searchable field of --kind."),
    ]
}

extension Invocation {
    /// The filter of any list, with its conditions for dead jobs.
    var deadFilter: DeadFilter {
        get throws {
            DeadFilter(
                filter, error: parsed.string("error"), since: try parsed.string("since").map(Self.moment),
                until: try parsed.string("until").map(Self.moment))
        }
    }

    /// The filter of any list, with all that a job can be found by.
    var search: JobSearch {
        get throws {
            JobSearch(
                try parsed.command.flag(named: "error") == nil ? DeadFilter(filter) : deadFilter,
                tenant: parsed.string("tenant"), uniqueKey: parsed.string("unique"),
                limitKey: parsed.string("limit-key"), group: group, field: try field)
        }
    }

    private var group: Int64? {
        parsed.command.flag(named: "group") == nil ? nil : parsed.integer("group").map { Int64($0) }
    }

    private var field: FieldValue? {
        get throws {
            guard parsed.command.flag(named: "field") != nil, let text = parsed.string("field") else { return nil }
            guard parsed.string("kind") != nil else {
                throw Failure(
                    .misused, "--field needs --kind", hint: "millrace kinds list shows the searchable fields of each")
            }
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            return FieldValue(name: parts[0], value: parts.last ?? "")
        }
    }

    static func moment(_ text: String) throws(ValueRefusal) -> DeadFilter.Moment {
        if let span = DurationText.read(text) { return .ago(span) }
        do throws(ValueRefusal) {
            return .at(try InstantText.read(text))
        } catch {
            // A time looks like one; anything else may have been meant as a span.
            guard text.contains("-") || text.contains(":") else {
                throw ValueRefusal(
                    complaint:
                        "takes \(InstantText.expectation), or how long ago, such as 2h; not \(Secrets.quoted(text))")
            }
            throw error
        }
    }
}

extension DeadCause {
    var json: JSONValue {
        ["kind": .string(kind), "error": .string(error), "jobs": .int(jobs), "without_args": .int(dropped)]
    }

    static func table(_ causes: [DeadCause]) -> Table {
        var table = Table([
            Table.Column("jobs", .trailing), Table.Column("kind", shrinks: true), Table.Column("error", shrinks: true),
        ])
        for cause in causes {
            table.add([
                Table.Cell(Humane.count(cause.jobs), .bold), Table.Cell(cause.kind),
                Table.Cell(DisplayWidth.harmless(cause.error), .dim),
            ])
        }
        return table
    }
}
