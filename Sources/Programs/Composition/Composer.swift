package import CommandKit
package import Documents
package import Postgres
package import Supervision
package import Telemetry

/// Puts the rooms of a worker together, from settings.
package struct Composer: Sendable {
    package let settings: Settings
    package let surroundings: Surroundings
    package let database: ConnectionOptions
    /// Around a transaction pooler, if there is one.
    package let direct: ConnectionOptions?
    package var log: Log
    /// The rooms that it serves, by their names; nil: all. The settings may switch a room off all the same.
    package var rooms: Set<String>?
    /// How long a worker that took an alarm may keep it; nil: the default.
    package var alarmLease: Duration?

    package init(
        settings: Settings, surroundings: Surroundings, database: ConnectionOptions, direct: ConnectionOptions?
    ) {
        self.settings = settings
        self.surroundings = surroundings
        self.database = database
        self.direct = direct
        log = settings.log
    }

    /// The supervisor through which a worker's handlers call providers.
    package func supervisor(name: String, hearing: NotificationHub? = nil) -> Supervisor {
        settings.supervisor(
            name: name, database: database, hearing: hearing ?? direct.map { NotificationHub($0) }, log: log)
    }

    package func serves(_ room: String) -> Bool { rooms?.contains(room) ?? true }

    /// A connection to a schema that this program can talk to. Errors of the database become failures.
    package func withSchema<Value: Sendable>(_ body: (Connection) async throws -> Value) async throws -> Value {
        try await SchemaCheck.withSchema(database, body)
    }
}

extension Invocation {
    /// What puts rooms together from the settings of this command.
    package func composer() throws(Failure) -> Composer {
        Composer(
            settings: settings, surroundings: surroundings, database: try connectionOptions(), direct: directOptions)
    }

    /// Where the programs are that read documents.
    package var workshop: DocumentPrograms { settings.workshop(beside: Composer.ownPath) }
}
