package import CommandKit
package import Encryption
package import PageKit
public import Schema

/// One capability that a program can have or leave out, with everything that belongs to it. `Rooms` in Composition lists them; help, the
/// completions, the table of settings, `doctor`, the migrator and the workers are made from that list.
public struct Room: Sendable {
    /// What it has in the database, with its name and the rooms that its SQL calls or reads.
    public let schema: RoomSchema
    package let settings: [Setting]
    /// What shows only once all settings have been read.
    package let judge: SettingsTable.Judge?
    /// A line for each noun of its verbs.
    package let nouns: [String: String]
    package let verbs: [Command]
    /// Pages of the console that read its tables.
    package let pages: [RoomPage]
    /// What `doctor` asks.
    package let checks: [RoomCheck]
    /// What it says in `status`.
    package let status: RoomStatus?
    /// What it brings to any worker that has a database; nil: it brings only `parts`.
    package let jobs: (@Sendable (RoomDatabase, Keyring) throws -> RoomJobs)?
    /// What it brings to one worker besides; nothing where the settings switch it off.
    package let parts: @Sendable (RoomContext) async throws -> RoomParts

    package init(
        _ schema: RoomSchema, settings: [Setting] = [], judge: SettingsTable.Judge? = nil,
        nouns: [String: String] = [:], verbs: [Command] = [], pages: [RoomPage] = [], checks: [RoomCheck] = [],
        status: RoomStatus? = nil,
        parts: @escaping @Sendable (RoomContext) async throws -> RoomParts = { _ in RoomParts() },
        jobs: (@Sendable (RoomDatabase, Keyring) throws -> RoomJobs)? = nil
    ) {
        self.schema = schema
        self.settings = settings
        self.judge = judge
        self.nouns = nouns
        self.verbs = verbs
        self.pages = pages
        self.checks = checks
        self.status = status
        self.jobs = jobs
        self.parts = parts
    }

    /// As its folder in `sql` is called.
    public var name: String { schema.name }
    /// The rooms that its SQL calls or reads.
    package var needs: [String] { schema.needs }
}

/// A program has each name once.
extension Room: Hashable {
    /// One name, one room.
    public static func == (left: Room, right: Room) -> Bool { left.name == right.name }
    /// By its name.
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}
