package import MillraceJobs
package import Workers

/// The jobs of a room that needs nothing but the database for them.
package struct RoomJobs: Sendable {
    package var handlers: [Handler]
    /// What a worker says to the database when it starts.
    package var schedules: [Schedule]

    package init(handlers: [Handler] = [], schedules: [Schedule] = []) {
        self.handlers = handlers
        self.schedules = schedules
    }
}
