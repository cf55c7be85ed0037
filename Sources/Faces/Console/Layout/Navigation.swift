import Postgres
import Templates

/// The pages by what people do: see what is the matter now, follow what flows, look into a room, read the record.
struct Navigation: Sendable {
    struct Entry: Sendable {
        let path: String
        let label: String
        /// Its page is of no use in a database without this room.
        var room: String?
    }

    static let groups: [(name: String, entries: [Entry])] = [
        (
            "Now",
            [
                Entry(path: "", label: "Overview"), Entry(path: "/failures", label: "Failures"),
                Entry(path: "/approvals", label: "Approvals"), Entry(path: "/workers", label: "Workers"),
            ]
        ),
        (
            "Flow",
            [
                Entry(path: "/queues", label: "Queues"), Entry(path: "/kinds", label: "Kinds"),
                Entry(path: "/jobs", label: "Jobs"),
                Entry(path: "/schedules", label: "Schedules"), Entry(path: "/limits", label: "Limits"),
                Entry(path: "/providers", label: "Providers"), Entry(path: "/versions", label: "Versions"),
            ]
        ),
        (
            "Rooms",
            [
                Entry(path: "/mail", label: "Mail", room: "mail"),
                Entry(path: "/templates", label: "Templates", room: "templates"),
                Entry(path: "/documents", label: "Documents", room: "documents"),
                Entry(path: "/checkins", label: "Check-ins", room: "checkins"),
                Entry(path: "/quests", label: "Quests", room: "quests"),
                Entry(path: "/notices", label: "Notices", room: "notices"),
                Entry(path: "/webhooks", label: "Webhooks", room: "webhooks"),
                Entry(path: "/subscriptions", label: "Subscriptions", room: "subscriptions"),
            ]
        ),
        (
            "Record",
            [
                Entry(path: "/operations", label: "Operations"), Entry(path: "/audit", label: "Audit"),
                Entry(path: "/past", label: "The past"), Entry(path: "/storage", label: "Storage"),
            ]
        ),
    ]

    /// Pages of rooms of other packages.
    let added: [Entry]
    /// On the start page of several databases, in place of all else.
    var databases: [Entry]?

    func value(current: String, _ facts: NavigationFacts.Facts) -> TemplateValue {
        .list(
            (databases.map { [("Databases", $0)] } ?? Self.groups).compactMap { name, entries in
                let shown = (name == "Rooms" ? entries + added : entries).filter { entry in
                    // The page that is open is always among them.
                    entry.room.map { facts.rooms?.contains($0) ?? true } ?? true || entry.label == current
                }
                guard !shown.isEmpty else { return nil }
                return .object([
                    "group": .string(name.lowercased()), "name": .string(name),
                    "entries": .list(shown.map { Self.value($0, current, facts.counts[$0.label]) }),
                ])
            })
    }

    private static func value(_ entry: Entry, _ current: String, _ count: NavigationFacts.Count?) -> TemplateValue {
        .object([
            "href": .string(ConsoleLayout.base + entry.path), "label": .string(entry.label),
            "current": .bool(entry.label == current),
            "count": count.map { .string(Figures.count($0.number, cap: $0.cap)) } ?? .null,
            "tone": .string(count?.tone ?? ""), "means": .string(count?.means ?? ""),
        ])
    }
}

/// What stands beside the entries, and which rooms there are: read at most every few seconds, for all visitors together.
actor NavigationFacts {
    struct Count: Sendable {
        let number: Int
        let cap: Int
        let tone: String
        let means: String
    }

    struct Facts: Sendable {
        /// nil: it is not known which are installed.
        var rooms: Set<String>?
        var counts: [String: Count] = [:]
    }

    private var latest: (facts: Facts, at: ContinuousClock.Instant)?
    private var isReading = false
    private static let fresh = Duration.seconds(10)

    /// The page does without them when they cannot be read.
    func facts(_ context: PageContext) async -> Facts {
        if let latest, latest.at.duration(to: .now) < Self.fresh || isReading { return latest.facts }
        isReading = true
        defer { isReading = false }
        let found = try? await context.json(
            """
            select jsonb_build_object(
                'rooms', (select coalesce(jsonb_agg(r.room), '[]') from millrace.rooms_installed() r),
                'workers', (select count(*) from (select from millrace.workers w where w.beat_at > millrace.now() - interval '8 s' limit 1000) x),
                'approvals', (select count(*) from millrace.approvals_shown(true, 100) a),
                'failures', (select count(*) from millrace.failure_groups(null, null, null, null, 50, 'last') g where g.last_at > millrace.now() - interval '1 hour'))
            """)
        guard let found else {
            // Asked again no sooner than after a while.
            latest = (latest?.facts ?? Facts(), .now)
            return latest?.facts ?? Facts()
        }
        var facts = Facts(rooms: Set(found.list("rooms").compactMap(\.plainText)))
        func count(_ label: String, _ key: String, cap: Int, tone: String, means: String) {
            guard let number = found.int(key), number > 0 else { return }
            facts.counts[label] = Count(number: number, cap: cap, tone: tone, means: means)
        }
        count("Failures", "failures", cap: 50, tone: "bad", means: "causes in the last hour")
        count("Approvals", "approvals", cap: 100, tone: "warn", means: "questions that are open")
        count("Workers", "workers", cap: 1000, tone: "", means: "workers that are running")
        latest = (facts, .now)
        return facts
    }
}
