package import Postgres
package import Signatures
package import Supervision
package import Telemetry

/// The running service: two lanes, and a sleep lock for both.
package actor NoticeService {
    package struct Options: Sendable {
        package var database: ConnectionOptions
        /// The process's LISTEN connection; nil: the service opens its own.
        package var hearing: NotificationHub?
        /// For statements that can wait.
        package var pool: Pool
        package var app = "Millrace"
        package var locale = "en"
        /// Makes the links by which contacts answer an alarm.
        package var links: Links?
        package var phrases = PublishedPhrases()
        package var alarmSlots = 64
        package var slots = 32
        /// How often to look for unannounced work.
        package var floor = Duration.seconds(1)
        package var alarmLease = Duration.seconds(30)
        package var lease = Duration.seconds(90)

        package init(database: ConnectionOptions) {
            self.database = database
            pool = Pool(database, size: 1)
        }
    }

    private let options: Options
    private let lanes: [NoticeLane]
    private let hearing: NotificationHub
    private let sleepLock: NoticeSleepLock
    private let tally = NoticeTally()
    private let log: Log

    package init(_ options: Options, providers: [any NoticeProvider], supervisor: Supervisor, log: Log) {
        self.options = options
        self.log = log
        let dispatch = NoticeRouter(
            providers: Dictionary(providers.map { ($0.name, $0) }) { first, _ in first }, supervisor: supervisor,
            app: options.app, locale: options.locale, links: options.links, phrases: options.phrases)
        let tally = tally
        lanes = [true, false].map { isAlarm in
            let lease = isAlarm ? options.alarmLease : options.lease
            return NoticeLane(
                NoticeLane.Options(
                    isAlarm: isAlarm, slots: isAlarm ? options.alarmSlots : options.slots, floor: options.floor,
                    lease: lease, deadline: min(lease * 0.6, .seconds(30))),
                database: options.database, dispatch: dispatch, tally: tally, log: log)
        }
        hearing = options.hearing ?? NotificationHub(options.database)
        sleepLock = NoticeSleepLock(
            hearing: hearing,
            signals: Dictionary(uniqueKeysWithValues: lanes.map { ($0.options.isAlarm, $0.signal) }), log: log)
    }

    /// Until cancelled; calls under way then are finished.
    package func run() async {
        await options.phrases.prepare()
        await withDiscardingTaskGroup { group in
            group.addTask { [options] in await options.phrases.run() }
            group.addTask { await self.hearing.run() }
            group.addTask { await self.sleepLock.run() }
            group.addTask { await self.sample() }
            for lane in lanes { group.addTask { await lane.run(hearing: self.sleepLock) } }
        }
    }

    package var standing: NoticeStanding {
        get async { await tally.standing }
    }

    /// Collects the figures for /metrics, which must not query the database itself.
    private func sample() async {
        while !Task.isCancelled {
            do {
                let state = try await options.pool.withConnection { connection throws(PostgresError) in
                    try await NoticeAdmin.state(on: connection, deadline: .seconds(5))
                }
                await tally.saw(state)
            } catch {
                log.debug("cannot read the state of notices", [("error", "\(error)")])
            }
            try? await Task.sleep(for: .seconds(5))
        }
    }
}

/// What this process has sent, and how far the whole fleet is behind.
package struct NoticeStanding: Sendable {
    package var alarms = Counts()
    package var plain = Counts()
    package var state: NoticeAdmin.State?

    package init() {}

    package struct Counts: Sendable {
        package var accepted = 0
        package var refused = 0
        package var failed = 0
        package var unknown = 0
    }
}

actor NoticeTally {
    private(set) var standing = NoticeStanding()

    func saw(_ state: NoticeAdmin.State) { standing.state = state }

    func count(_ delivery: NoticeOutcome, isAlarm: Bool) {
        var counts = isAlarm ? standing.alarms : standing.plain
        switch delivery {
        case .accepted: counts.accepted += 1
        case .refused, .gone: counts.refused += 1
        case .failed: counts.failed += 1
        case .unknown: counts.unknown += 1
        case .notCalled: break  // the supervisor counts these
        }
        if isAlarm { standing.alarms = counts } else { standing.plain = counts }
    }
}
