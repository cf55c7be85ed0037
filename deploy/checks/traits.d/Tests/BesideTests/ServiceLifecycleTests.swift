#if ServiceLifecycle
    import Logging
    import Millrace
    import MillraceServiceLifecycle
    import ServiceLifecycle
    import Synchronization
    import Testing

    /// A server beside the worker, that notes when it was told to end.
    private struct Server: Service {
        let isOver: Flag

        func run() async throws {
            try? await gracefulShutdown()
            isOver.set()
        }
    }

    private final class Flag: Sendable {
        private let value = Mutex(false)
        var isSet: Bool { value.withLock { $0 } }
        func set() { value.withLock { $0 = true } }
    }

    @Suite struct ServiceLifecycleTests {
        @Test(arguments: [false, true])
        func `a group shuts down with a job running, which ends`(byCancellation: Bool) async throws {
            try await withQueue(byCancellation ? "cancelled" : "graceful") { database, client in
                let (began, begins) = AsyncStream.makeStream(of: Void.self)
                let worker = Worker(database: database, log: .silent)
                worker.handle(Receipt.self) { _, _ in
                    begins.yield()
                    // The drain has begun long before the end of this, and lets it end.
                    for _ in 0..<20 { try await Task.sleep(for: .milliseconds(100)) }
                    return .done
                }
                let server = Server(isOver: Flag())
                let group = ServiceGroup(
                    services: [server, WorkerService(worker)], logger: Logger(label: "group"))
                let id = try await client.enqueue(Receipt(order: 7))
                let later = try await client.enqueue(Receipt(order: 8), in: .seconds(3600))
                let running = Task { try await group.run() }
                for await _ in began { break }
                if byCancellation { running.cancel() } else { await group.triggerGracefulShutdown() }
                // A cancelled group may throw that it was.
                _ = await running.result
                let ended = try await client.job(id)
                #expect(ended?.state == .succeeded && ended?.attempt == 1)
                #expect(try await client.job(later)?.state == .scheduled)
                #expect(byCancellation || server.isOver.isSet)
            }
        }
    }
#endif
