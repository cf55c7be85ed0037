package import CommandKit
import Console
import Gateway
import Listeners
import MillraceQueues
package import Postgres
package import Supervision
package import Telemetry
package import Traces

/// Puts the rooms of a worker together, from settings.
package struct Composer: Sendable {
    package let settings: Settings
    package let surroundings: Surroundings
    package private(set) var database: ConnectionOptions
    /// Around a transaction pooler, if there is one.
    package private(set) var direct: ConnectionOptions?
    package var log: Log
    /// By which a worker hears what it cannot listen for itself.
    package var waker: WakerClient? { settings.text(.waker).map { WakerClient(path: $0) } }
    /// The rooms of the program.
    package let known: [Room]
    /// The rooms that it serves, by their names; nil: all. The settings may switch a room off all the same.
    package var rooms: Set<String>?
    /// How long a worker that took an alarm may keep it; nil: the default.
    package var alarmLease: Duration?
    /// Another worker of the process has the listener, and speaks with the service manager.
    package var isOneOfSeveral = false
    /// Keeps the spans in place of the collector that the settings name; nil: they are sent there, if there is one.
    package var spans: (any OutsideTracer)?

    package init(
        settings: Settings, surroundings: Surroundings, database: ConnectionOptions, direct: ConnectionOptions?,
        known: [Room] = Rooms.all
    ) {
        self.known = known
        self.settings = settings
        self.surroundings = surroundings
        self.database = database
        self.direct = direct
        log = settings.log
    }

    /// A worker's: all that it puts together shares as many connections as the settings say.
    package func sharingConnections() -> Composer {
        guard let most = settings.connections else { return self }
        var composer = self
        let budget = ConnectionBudget(most: most)
        composer.database.budget = budget
        composer.direct?.budget = budget
        return composer
    }

    /// The supervisor through which a worker's handlers call providers.
    package func supervisor(
        name: String, hearing: NotificationHub? = nil, tracer: Tracer? = nil
    ) -> Supervisor {
        settings.supervisor(
            name: name, database: database, hearing: hearing ?? direct.map { NotificationHub($0) }, log: log,
            tracer: tracer)
    }

    /// The path of this very program.
    package static var ownPath: String { OwnProgram.path }

    package func blobs(pool: Pool) -> BlobWiring {
        BlobWiring(
            settings, pool: pool, addresses: ClientAddress(proxies: settings.addresses(.gatewayProxies)), log: log)
    }

    package func serves(_ room: String) -> Bool { rooms?.contains(room) ?? true }

    /// Of its rooms those that the database has. What is left out is said, and a door that the settings ask for is a failure.
    func installed() async throws -> Composer {
        let there: Set<String>
        do {
            there = Set(try await withSchema { try await Queue.installedRooms(on: $0) }.keys)
        } catch let failure as any CommandFailure where failure.exitCode == .schemaMismatch {
            return self  // the engine refuses that schema, and notes there that it was started
        }
        for (room, isAskedFor) in [("console", settings.showsConsole), ("gateway", settings.servesApps)]
        where isAskedFor && !there.contains(room) {
            throw Failure(
                .schemaMismatch, "the settings ask for the room \(room), which is not installed in this database",
                hint: "run: millrace rooms add \(room)")
        }
        let absent = known.map(\.name).filter { serves($0) && !there.contains($0) }
        if !absent.isEmpty {
            log.info(
                "rooms that are not installed are not served", [("rooms", absent.sorted().joined(separator: ", "))])
        }
        var composer = self
        composer.rooms = rooms?.intersection(there) ?? there
        return composer
    }

    /// A connection to a schema that this program can talk to. Errors of the database become failures.
    package func withSchema<Value: Sendable>(_ body: (Connection) async throws -> Value) async throws -> Value {
        try await SchemaCheck.withSchema(database, body)
    }
}

extension Invocation {
    /// What puts rooms together from the settings of this command.
    package func composer(_ rooms: [Room] = Rooms.all) throws(Failure) -> Composer {
        Composer(
            settings: settings, surroundings: surroundings, database: try connectionOptions(), direct: directOptions,
            known: rooms)
    }

    /// The same where the settings name several databases: it makes the composers for them, and has none of its own.
    package func severalComposer(_ rooms: [Room] = Rooms.all) -> Composer {
        Composer(
            settings: settings, surroundings: surroundings, database: options(at: ""), direct: nil, known: rooms)
    }
}
