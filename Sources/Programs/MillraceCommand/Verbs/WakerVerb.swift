import Postgres
import Telemetry
import Threads

extension Command {
    static let waker = Command(
        ["waker"],
        summary: "Wake the workers of this host that cannot listen",
        discussion: """
            A worker behind a transaction pooler, or with few connections (MILLRACE_CONNECTIONS), hears no notification and \
            polls. One waker on its host listens for all of them on two direct connections, and tells them over a socket, \
            so that they begin as soon as a worker that listens. Give the waker and the workers the same MILLRACE_WAKER. \
            While the waker is away, the workers poll. One waker serves one database.
            """,
        flags: [
            Setting.waker.flag, Setting.directURL.flag, Setting.logLevel.flag, Setting.logFormat.flag,
            .single(
                "parent", "PID", .integer(0...Int(Int32.max)), environment: .none, hidden: true,
                help: "End when this process ends."),
        ],
        examples: [
            Example("millrace waker --waker /run/millrace/waker.sock", "for all workers with that MILLRACE_WAKER")
        ]
    ) { invocation in try await invocation.runWaker() }
}

extension Invocation {
    fileprivate func runWaker() async throws -> ExitCode {
        dieWithParent(parsed.integer("parent") ?? 0)
        guard let path = settings.text(.waker) else {
            throw Failure(.misused, "no socket is named", hint: "set MILLRACE_WAKER, here and for the workers")
        }
        let options = try directOptions ?? connectionOptions()
        try await refusePooler(options)
        let server: WakerServer
        do throws(WakerFailure) {
            server = try WakerServer(path: path)
        } catch {
            throw Failure(.failed, "the waker cannot serve \(error.path): \(error.reason)")
        }
        let stop = Wakeup()
        UnixSignals.onStop { _ in stop.fire() }
        let service = WakerService(server: server, options: options, log: settings.log)
        await withDiscardingTaskGroup { group in
            group.addTask { await service.run() }
            await stop.wait()
            group.cancelAll()
        }
        return .done
    }

    /// Through a transaction pooler nothing is heard.
    private func refusePooler(_ options: ConnectionOptions) async throws {
        do throws(PostgresError) {
            let connection = try await Connection.open(options, name: "mr-waker")
            let isPooled = await connection.isPooled
            await connection.close()
            guard isPooled else { return }
        } catch {
            guard error.isOutage, !error.isRejection else { throw DatabaseFailure(error) }
            return  // it waits for the database, as a worker does
        }
        throw Failure(
            .misused, "this address leads to a transaction pooler, through which nothing is heard",
            hint: "set MILLRACE_DIRECT_URL to a way around it")
    }
}
