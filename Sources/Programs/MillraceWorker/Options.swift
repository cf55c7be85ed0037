import Composition
import FoundationEssentials
public import Millrace
import Postgres
public import RoomKit
import Telemetry

extension CompleteWorker {
    /// One of Millrace's, or yours.
    public typealias Room = RoomKit.Room

    /// The options of a worker.
    public struct Options: Sendable {
        /// Settings by the names that they have in the environment, such as `MILLRACE_MAIL_SMTP_URL`. They win over the environment's,
        /// and the properties below win over them. `millrace config` lists them all.
        public var settings: [String: String]
        /// Whether settings that are missing in ``settings`` are looked for in the environment.
        public var readsEnvironment = true
        /// The database of the queue.
        public var database = Database.environment
        /// The rooms that it serves, Millrace's and yours: only their handlers, services and routes run. nil: every room of Millrace's that the
        /// settings do not switch off.
        public var rooms: Set<Room>?
        /// How many jobs run at the same time; nil: `MILLRACE_SLOTS`, or 100.
        public var slots: Int?
        /// The queues to serve, optionally with a bound for each; none: `MILLRACE_QUEUES`, or all.
        public var queues: [String: Int?] = [:]
        /// How long running jobs may continue once it is told to stop; nil: `MILLRACE_DRAIN_TIMEOUT`, or 30 seconds.
        public var drainTimeout: Duration?
        /// The address for HTTP, such as `127.0.0.1:8470`, or `off`; nil: `MILLRACE_LISTEN`, or that address.
        public var listen: String?
        /// Its name; nil: `MILLRACE_WORKER_NAME`, or host and process number.
        public var name: String?
        /// The lowest level to log; nil: `MILLRACE_LOG_LEVEL`, or info.
        public var log: Millrace.Worker.LogLevel?
        /// The receiver of the log; nil: stderr.
        public var logReceiver: (any LogReceiver)?
        /// The receiver of the metrics; nil: only `/metrics`.
        public var metrics: (any MetricsReceiver)?
        /// The receiver of the spans, in place of the collector that the settings name; nil: that collector, or none.
        public var spans: (any SpanReceiver)?

        /// The names of all settings that Millrace's rooms read, for a program that has them from elsewhere than the environment.
        public static var settingNames: [String] {
            SettingsTable.of(Rooms.all).settings.map(\.environment).filter { !$0.isEmpty }
        }

        /// The environment's settings, except for these.
        public init(settings: [String: String] = [:]) {
            self.settings = settings
        }
    }
}

extension CompleteWorker.Options {
    func composer() throws(QueueError) -> Composer {
        var surroundings = Surroundings.live()
        if !readsEnvironment { surroundings.environment = [:] }
        surroundings.environment.merge(settings) { $1 }
        surroundings.environment.merge(given) { $1 }
        // A name and its file must not both be set: the value given here wins.
        for name in settings.keys { surroundings.environment[name + "_FILE"] = settings[name + "_FILE"] }
        let known: [Room]
        do throws(Failure) {
            known = try Rooms.with(Array(rooms ?? []))
        } catch {
            throw QueueError(error)
        }
        let settings = Settings.load(
            surroundings: surroundings, known: ["MILLRACE_WORKER_NAME"], table: .of(known))
        guard settings.problems.isEmpty else {
            throw QueueError(.misconfigured, settings.problems.joined(separator: "; "))
        }
        guard settings.databases.isEmpty || !database.isEnvironment else {
            throw QueueError(
                .misconfigured,
                "MILLRACE_DATABASES names several databases, and a CompleteWorker serves one: give DATABASE_URL, or options.database"
            )
        }
        let place = try location(surroundings.environment)
        let composed = Composer(
            settings: settings, surroundings: surroundings,
            database: settings.options(at: place.database, environment: surroundings.environment),
            direct: place.direct.map { settings.options(at: $0, environment: surroundings.environment) }, known: known)
        var composer = composed.sharingConnections()
        composer.spans = spans.map { ReceivingTracer($0) }
        composer.rooms = rooms.map { rooms in Set(rooms.map(\.name)) }
        composer.log = (log ?? .init(settings.logLevel)).log(to: logReceiver)
        if log == nil, logReceiver == nil { composer.log = settings.log }
        for warning in settings.warnings {
            composer.log.warning("a setting needs attention", [("warning", warning)])
        }
        return composer
    }

    /// The properties in the form of environment variables.
    private var given: [String: String] {
        var given: [String: String] = [:]
        given["MILLRACE_SLOTS"] = slots.map(String.init)
        given["MILLRACE_DRAIN_TIMEOUT"] = drainTimeout.map { "\(Int64($0 / .milliseconds(1)))ms" }
        given["MILLRACE_LISTEN"] = listen
        if !queues.isEmpty {
            given["MILLRACE_QUEUES"] = queues.sorted { $0.key < $1.key }
                .map { name, slots in slots.map { "\(name):\($0)" } ?? name }.joined(separator: ",")
        }
        guard let rooms else { return given }
        func say(_ room: Room, _ name: String) { given[name] = rooms.contains(room) ? "on" : "off" }
        say(.quests, "MILLRACE_QUESTS")
        say(.notices, "MILLRACE_NOTICES")
        say(.webhooks, "MILLRACE_WEBHOOKS")
        say(.checkIns, "MILLRACE_CHECKINS")
        return given
    }

    /// The settings' own place counts where the database is the environment's.
    private func location(_ environment: [String: String]) throws(QueueError) -> (database: String, direct: String?) {
        let options = try database.locations()
        guard database.isEnvironment else { return options }
        return (
            environment["DATABASE_URL"].flatMap { $0.isEmpty ? nil : $0 } ?? options.database,
            environment["MILLRACE_DIRECT_URL"].flatMap { $0.isEmpty ? nil : $0 } ?? options.direct
        )
    }
}

extension Millrace.Worker.LogLevel {
    init(_ word: String) {
        switch word {
        case "debug": self = .debug
        case "warning", "error": self = .warning
        default: self = .info
        }
    }
}
