import Approvals
import Console
import Gateway
import Health
import Listeners
import Mail
import MillraceJobs
import PageKit
package import Postgres
import Supervision
import Telemetry
import Threads
import TraceExport
import Traces
package import Workers

/// A worker with its rooms, its listener and its supervisor: everything that `millrace worker` runs.
package struct ComposedWorker: Sendable {
    package let engine: JobWorker
    let supervisor: Supervisor
    let listener: Listener?
    let console: ConsoleService?
    let gateway: GatewayWiring?
    let blobs: BlobWiring?
    /// nil: no collector is named.
    let traces: TraceExporter?
    /// The services of the rooms.
    let services: [@Sendable () async -> Void]
    /// The connections of all parts; nil: each has its own.
    let budget: ConnectionBudget?
    /// Closed with it, where another worker of the process may follow.
    let ownPool: Pool?
    /// What its listener answers beside probes and metrics.
    let routes: [Route]
    /// The text of its metrics, with these counts of a listener.
    let metrics: @Sendable (Listener.Counts?) async -> String

    /// Until it is drained, or its task is cancelled, which drains it. The rooms continue until the last job has ended, because its
    /// handlers call providers and check-ins must be served; the listener goes on answering, because others watch the drain.
    package func run() async throws -> JobWorker.Report {
        try await withTaskCancellationHandler {
            try await uncancelled {
                let outcome: Result<JobWorker.Report, any Error>
                do { outcome = .success(try await work()) } catch { outcome = .failure(error) }
                await budget?.close()
                await ownPool?.close()
                return try outcome.get()
            }
        } onCancel: {
            engine.drain()
        }
    }

    private func work() async throws -> JobWorker.Report {
        // These are cancelled and awaited when we leave, the last first; what they are about to send is sent.
        async let _: Void? = traces?.run()
        async let _: Void = serveRooms()
        async let _: Void? = blobs?.run()
        async let _: Void = supervisor.run()
        async let _: Void? = console?.run()
        async let answering: Void? = listener?.run()
        async let serving: Void? = gateway?.run()
        let outcome: Result<JobWorker.Report, any Error>
        do {
            outcome = .success(try await engine.run())
        } catch {
            outcome = .failure(error)
        }
        listener?.stop()
        gateway?.listener.stop()
        try? await answering  // that it did not start has been said
        try? await serving
        return try outcome.get()
    }

    private func serveRooms() async {
        await withDiscardingTaskGroup { group in
            for service in services { group.addTask { await service() } }
        }
    }
}

extension Composer {
    /// A worker of these handlers and of every room that the settings ask for and the database has. What was set for all callers is written to
    /// the database before.
    package func worker(
        _ handlers: [Handler], middleware: [Middleware] = [], name: String? = nil, pool: Pool? = nil,
        change: (inout JobWorker.Options) -> Void = { _ in }
    ) async throws -> ComposedWorker {
        try await installed().compose(handlers, middleware: middleware, name: name, pool: pool, change: change)
    }

    private func compose(
        _ handlers: [Handler], middleware: [Middleware], name: String?, pool: Pool?,
        change: (inout JobWorker.Options) -> Void
    ) async throws -> ComposedWorker {
        let pool = pool ?? Pool(database, size: 4)
        var options = JobWorker.Options(database: database, name: name)
        let hearing = NotificationHub(direct ?? database, waker: waker)
        let traces = traceExporter(of: options.name)
        options.tracer = spans.map { Tracer(outside: $0) } ?? traces?.tracer
        let supervisor = supervisor(name: options.name, hearing: hearing, tracer: options.tracer)
        let context = RoomContext(
            settings: settings, surroundings: surroundings, database: database, log: log, name: options.name,
            pool: pool, hearing: hearing, supervisor: supervisor,
            serves: serves, alarmLease: alarmLease)
        var rooms: [RoomParts] = []
        for room in known where serves(room.name) {
            var parts = try await room.parts(context)
            if let jobs = try room.jobs?(RoomDatabase(pool, settings: settings), settings.keys) {
                parts.handlers += jobs.handlers
                parts.schedules += jobs.schedules
            }
            rooms.append(parts)
        }
        options.direct = direct
        options.hearing = hearing
        options.queues = settings.queues.map { (name: $0.queue, slots: $0.slots) }
        options.slots = settings.slots
        options.bounds = rooms.map(\.bounds).reduce([:]) { $0.merging($1) { first, _ in first } }
        options.drainDeadline = settings.drainTimeout
        options.poll = settings.poll
        options.keys = settings.keys
        if !isOneOfSeveral { options.service = ServiceSocket(environment: surroundings.environment) }
        options.rooms = rooms.map(\.serves).reduce([:]) { $0.merging($1) { first, _ in first } }
        if let build = settings.text(.build) { options.build = build }
        options.isPinned = settings.onlyBuild
        change(&options)
        options.schedules += rooms.flatMap(\.schedules)
        let all = handlers + rooms.flatMap(\.handlers)
        let engine = JobWorker(options: options, handlers: all, middleware: middleware, log: log)
        let blobs = serves("blobs") ? blobs(pool: pool) : nil
        let host = settings.pageHost
        let approvalRoutes =
            settings.links.map { ApprovalRoutes(pool: pool, log: log, links: $0, host: host).all } ?? []
        let console =
            settings.showsConsole
            ? try console(
                pool: ConsoleService.connections(database.urgent(.late), size: 6), version: JobWorker.version,
                keepsHouse: false)
            : nil
        let gateway =
            settings.servesApps
            ? try gateway(supervisor: supervisor, hearing: hearing, version: JobWorker.version) : nil
        let gauges = rooms.compactMap(\.gauges)
        let routes =
            rooms.flatMap(\.routes) + approvalRoutes + (blobs?.routes ?? []) + (console?.routes ?? [])
        let metrics: @Sendable (Listener.Counts?) async -> String = { counts in
            await HealthRoutes.metrics(
                of: engine, supervisor: supervisor,
                rooms: {
                    var all: [RoomGauge] = []
                    for one in gauges { all += await one() }
                    if let traces { all += TraceMetrics(counts: traces.tracer.counts).gauges }
                    return all
                }, measures: { engine.health.cutOff == nil ? await measures(pool) : nil }, counts: counts)
        }
        let listener = isOneOfSeveral ? nil : try listener(for: engine, metrics: metrics, more: routes)
        return ComposedWorker(
            engine: engine, supervisor: supervisor, listener: listener, console: console, gateway: gateway,
            blobs: blobs, traces: traces, services: rooms.compactMap(\.run), budget: database.budget,
            ownPool: isOneOfSeveral ? pool : nil, routes: routes, metrics: metrics)
    }

    /// What sends the spans of a worker; nil where no collector is named.
    private func traceExporter(of worker: String) -> TraceExporter? {
        guard spans == nil, var collector = settings.collector else { return nil }
        collector.resource += [.text("service.version", JobWorker.version), .text("service.instance.id", worker)]
        return TraceExporter(
            collector, tracer: Tracer(collector.sampling), version: JobWorker.version, log: log)
    }
}
