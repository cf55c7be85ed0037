package import Postgres

extension Migrator {
    package enum Failure: Error, Sendable, CustomStringConvertible {
        /// `line`: whose migrations are newer, the core's or a room's.
        case newerSchema(found: Int, known: Int, line: String)
        case olderSchema(found: Int, oldest: Int)
        /// From before rooms had lines of their own, and this program does not take such a schema over.
        case schemaBeforeLines(found: Int)
        /// The schema has rooms that this program does not have.
        case unknownRooms([String])
        case noSuchRoom(String, known: [String])
        case notInstalled(String)
        /// It cannot be taken away while others need it.
        case roomIsNeeded(String, by: [String])
        case roomHasRows(String, table: String)
        /// Something of others', such as a view, stands on one of its tables.
        case roomIsUsed(String, by: String)
        /// A room of another package makes what another room, or the core, makes as well; or it has no name of its own.
        case nameIsTaken(String, room: String, by: String)
        /// A room of another package needs one that does not stand before it.
        case needIsMissing(String, room: String)
        case oldServer(Int)
        case foreignSchema(owner: String, role: String)
        case foreignObjects([SchemaObject], owner: String)
        case busy(PostgresError)
        case database(PostgresError)

        /// The schema is not one that this program may migrate.
        package var refusesSchema: Bool {
            switch self {
            case .newerSchema, .olderSchema, .schemaBeforeLines, .unknownRooms, .foreignSchema, .foreignObjects: true
            case .noSuchRoom, .notInstalled, .roomIsNeeded, .roomHasRows, .roomIsUsed, .nameIsTaken, .needIsMissing,
                .oldServer, .busy, .database:
                false
            }
        }

        package var description: String {
            switch self {
            case .newerSchema(let found, let known, "core"):
                "The database has schema version \(found), and this program knows only up to \(known). Use a newer millrace."
            case .newerSchema(let found, let known, let room):
                "The room \(room) has schema version \(found), and this program knows only up to \(known). Use a newer millrace."
            case .olderSchema(let found, let oldest):
                """
                The database has schema version \(found), and this program takes over from \(oldest) on. \
                Migrate with millrace 0.1.0 first, and then again with this one.
                """
            case .schemaBeforeLines(let found):
                """
                The database has schema version \(found), of millrace 0.1.0, with every room that there was. \
                Migrate with the program millrace, which takes it over.
                """
            case .unknownRooms(let names):
                """
                The database has \(names.count == 1 ? "the room" : "the rooms") \(names.joined(separator: ", ")), which this program does not have: \
                it would take \(names.count == 1 ? "its" : "their") functions away. Migrate with a program that has \
                \(names.count == 1 ? "it" : "them").
                """
            case .noSuchRoom(let name, let known):
                "There is no room \(name). The rooms are: \(known.joined(separator: ", "))."
            case .notInstalled(let name):
                "The room \(name) is not installed."
            case .roomIsNeeded(let name, let others):
                "The room \(name) is needed by \(others.joined(separator: ", ")): remove \(others.count == 1 ? "that" : "those") too, or keep it."
            case .roomHasRows(let name, let table):
                "The room \(name) has rows, in \(table) for one."
            case .roomIsUsed(let name, let detail):
                "Something that is not Millrace's depends on the room \(name): \(detail.split(separator: "\n").joined(separator: "; ")). Drop it first."
            case .nameIsTaken(let name, let room, let other):
                "The room \(room) makes \(name), which is \(other)'s: give it another name."
            case .needIsMissing(let need, let room):
                "The room \(room) needs the room \(need), which this program does not have, or which comes after it."
            case .oldServer(let version):
                "Postgres 14 or later is needed; this server is \(version / 10000)."
            case .foreignSchema(let owner, let role):
                """
                The schema millrace belongs to the role \(owner), and this is \(role): what is in it would run with this role's rights. \
                Migrate as \(owner); or, if nobody made it on purpose, look at it, drop it, and migrate again.
                """
            case .foreignObjects(let objects, let owner):
                """
                The schema millrace holds objects that no migration made: \(SchemaObject.list(objects)). Look at each. Drop it or move it to another \
                schema (alter … set schema …); what is Millrace's own and has another owner goes back with alter … owner to \(owner). \
                Then migrate again.
                """
            case .busy(let error): "Other sessions kept the tables locked; try again. \(error)"
            case .database(let error): "The migration failed and changed nothing. \(error)"
            }
        }
    }
}
