/// What one room has in the database: a line of numbered migrations, each applied once, and functions, applied again by every migrate.
public struct RoomSchema: Sendable {
    /// As it is named in `millrace rooms` and in the lines of its doors.
    public let name: String
    /// The rooms that it calls, besides the core. They are installed with it.
    public let needs: [String]
    /// What it is, for a list of rooms.
    package let purpose: String
    /// Kinds of jobs that its workers do.
    package let kinds: [String]
    /// In order. Append only; never edit one that was released.
    package let migrations: [Script]
    /// In the order in which they build on each other.
    package let functions: [Script]
    /// Another package brings it, so its names are compared with everybody's before a migrate.
    package let isFromOutside: Bool

    package init(
        name: String, needs: [String] = [], purpose: String, kinds: [String] = [], migrations: [Script],
        functions: [Script]
    ) {
        self.name = name
        self.needs = needs
        self.purpose = purpose
        self.kinds = kinds
        self.migrations = migrations
        self.functions = functions
        isFromOutside = false
    }

    /// The tables and functions of a room of your own. Its scripts write every name with its schema, `millrace`, and begin each `create table` on a
    /// line of its own: `millrace rooms remove` finds there what to take away.
    /// - Parameters:
    ///   - needs: The rooms whose functions or tables it uses, besides the core.
    ///   - purpose: What it is, in a few words, for `millrace rooms list`.
    ///   - kinds: The kinds of its jobs. `millrace rooms check` names the room if such jobs wait and it is not installed.
    ///   - migrations: By name, such as `001_shelf`, in order; each runs once. Append only.
    ///   - functions: By name; every migrate runs them again, so they `create or replace`.
    public init(
        name: String, needs: [String] = [], purpose: String, kinds: [String] = [],
        migrations: KeyValuePairs<String, [UInt8]>, functions: KeyValuePairs<String, [UInt8]>
    ) {
        self.name = name
        self.needs = needs
        self.purpose = purpose
        self.kinds = kinds
        self.migrations = migrations.map { Script($0.key, $0.value) }
        self.functions = functions.map { Script($0.key, $0.value) }
        isFromOutside = true
    }

    /// The number of its last migration.
    package var version: Int { migrations.last?.number ?? 0 }
}

/// How a database from before there were lines is taken over: as it is, so that the first migration of each line makes what it has already.
package struct SchemaAdoption: Sendable {
    /// The lowest version that is taken over.
    package let oldest: Int
    /// In order; the last one makes the lines. One that is higher than the version of the database is applied.
    package let scripts: [Script]
    /// What such a database has: a program without one of these rooms leaves it alone.
    package let rooms: [String]

    package init(oldest: Int, scripts: [Script], rooms: [String]) {
        self.oldest = oldest
        self.scripts = scripts
        self.rooms = rooms
    }

    /// The last version from before there were lines.
    package var newest: Int { scripts.dropLast().last?.number ?? 0 }
}

package struct Script: Sendable {
    package let name: String
    package let bytes: [UInt8]

    package init(_ name: String, _ bytes: [UInt8]) {
        self.name = name
        self.bytes = bytes
    }

    package var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Of a migration: 7 of `007_schedules`.
    package var number: Int { Int(name.prefix { $0 != "_" }) ?? 0 }
}
