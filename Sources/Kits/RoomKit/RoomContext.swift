package import CommandKit
package import Postgres
package import Supervision
package import Telemetry
package import Traces

/// What a worker gives to its rooms.
package struct RoomContext: Sendable {
    package let settings: Settings
    package let surroundings: Surroundings
    package let database: ConnectionOptions
    package let log: Log
    /// The worker's name.
    package let name: String
    /// For short questions. A service that asks much opens a pool of its own.
    package let pool: Pool
    package let hearing: NotificationHub
    package let supervisor: Supervisor
    /// Whether the worker serves a room, by its name.
    package let serves: @Sendable (String) -> Bool
    /// How long a worker that took an alarm may keep it; nil: the default.
    package let alarmLease: Duration?

    package init(
        settings: Settings, surroundings: Surroundings, database: ConnectionOptions, log: Log, name: String,
        pool: Pool, hearing: NotificationHub, supervisor: Supervisor,
        serves: @escaping @Sendable (String) -> Bool = { _ in true }, alarmLease: Duration? = nil
    ) {
        self.settings = settings
        self.surroundings = surroundings
        self.database = database
        self.log = log
        self.name = name
        self.pool = pool
        self.hearing = hearing
        self.supervisor = supervisor
        self.serves = serves
        self.alarmLease = alarmLease
    }

    /// A connection to a schema that this program can talk to. Errors of the database become failures.
    package func withSchema<Value: Sendable>(_ body: (Connection) async throws -> Value) async throws -> Value {
        try await SchemaCheck.withSchema(database, body)
    }
}

extension Settings {
    /// What calls to providers go through.
    package func supervisor(
        name: String, database: ConnectionOptions, hearing: NotificationHub?, log: Log, tracer: Tracer? = nil
    ) -> Supervisor {
        var options = supervision
        options.database = database
        options.hearing = hearing
        options.name = name
        options.tracer = tracer
        return Supervisor(options, log: log)
    }
}

extension Invocation {
    /// What a single verb calls providers through.
    package func supervisor(name: String) throws(Failure) -> Supervisor {
        settings.supervisor(
            name: name, database: try connectionOptions(), hearing: directOptions.map { NotificationHub($0) },
            log: settings.log)
    }
}
