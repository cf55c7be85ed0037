package import JSON
package import Postgres

/// What a room says in `status`: a line or two, figures for machines, and what is wrong. It is read only where the room is installed.
public struct RoomStatus: Sendable {
    /// Its member of the JSON; nil: it stands among those of other packages, by the room's name.
    package let key: String?
    /// The heading of its lines.
    package let title: String
    /// What may be wrong.
    package let alarms: [Alarm]
    package let read: @Sendable (Connection, Duration) async throws(PostgresError) -> RoomState
    /// What it means that the room cannot be read, by the reason; nil: that is said, and nothing is wrong.
    package let unreadable: (@Sendable (String) -> Finding)?

    package init(
        key: String, title: String, alarms: [Alarm] = [], unreadable: (@Sendable (String) -> Finding)? = nil,
        read: @escaping @Sendable (Connection, Duration) async throws(PostgresError) -> RoomState
    ) {
        self.key = key
        self.title = title
        self.alarms = alarms
        self.unreadable = unreadable
        self.read = read
    }

    /// What a room of another package says.
    /// - Parameters:
    ///   - title: The heading of its lines.
    ///   - read: Looks, and says how the room is. Who looks waits for it: it reads a few rows.
    public init(_ title: String, read: @escaping @Sendable (RoomDatabase) async throws -> RoomState) {
        key = nil
        self.title = title
        alarms = []
        unreadable = nil
        self.read = { (connection, deadline) async throws(PostgresError) in
            do {
                return try await read(RoomDatabase(connection, deadline: deadline))
            } catch let error as PostgresError {
                throw error
            } catch {
                return RoomState("its state cannot be read: \(error)")
            }
        }
    }
}

/// How a room is.
public struct RoomState: Sendable {
    package var json: JSONValue
    /// None: there is nothing to read.
    package var lines: [String]
    package var findings: [Finding]

    package init(json: JSONValue, lines: [String] = [], findings: [Finding] = []) {
        self.json = json
        self.lines = lines
        self.findings = findings
    }

    /// - Parameters:
    ///   - lines: For people. None: there is nothing to read.
    ///   - figures: For machines, by their names.
    ///   - findings: What is wrong.
    public init(_ lines: String..., figures: [String: Int] = [:], findings: [Finding] = []) {
        json = .object(figures.sorted { $0.key < $1.key }.map { .init(key: $0.key, value: .int($0.value)) })
        self.lines = lines
        self.findings = findings
    }
}
