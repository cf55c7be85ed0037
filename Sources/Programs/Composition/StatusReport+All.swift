package import Postgres

extension StatusReport {
    /// With what every room says.
    package static func read(on connection: Connection, cap: Int?, patience: Duration) async throws -> StatusReport {
        try await read(of: Rooms.all, on: connection, cap: cap, patience: patience)
    }
}
