package import Listeners
package import MillraceJobs
package import Workers

/// What a room brings to one worker.
package struct RoomParts: Sendable {
    package var handlers: [Handler]
    /// What the worker says to the database when it starts.
    package var schedules: [Schedule] = []
    /// How many slots of the worker a queue may take.
    package var bounds: [String: Int]
    /// The routes of the worker's listener.
    package var routes: [Route]
    /// Its services. They run until they are cancelled, which is when the last job has ended.
    package var run: (@Sendable () async -> Void)?
    /// What `/metrics` shows of it.
    package var gauges: (@Sendable () async -> [RoomGauge])?
    /// How the worker serves it, for `status`, which names what nobody serves.
    package var serves: [String: String]

    package init(
        handlers: [Handler] = [], bounds: [String: Int] = [:], routes: [Route] = [],
        run: (@Sendable () async -> Void)? = nil, gauges: (@Sendable () async -> [RoomGauge])? = nil,
        serves: [String: String] = [:]
    ) {
        self.handlers = handlers
        self.bounds = bounds
        self.routes = routes
        self.run = run
        self.gauges = gauges
        self.serves = serves
    }
}
