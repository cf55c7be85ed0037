#if SwiftLog
    import Logging
    import Millrace
    import MillraceSwiftLog
    import Synchronization
    import Testing

    /// A handler of swift-log: the name is swift-log's, although Millrace is imported, too.
    private struct Kept: LogHandler {
        final class Lines: Sendable {
            let all = Mutex<[(level: Logger.Level, message: String, metadata: Logger.Metadata)]>([])
        }
        let lines: Lines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.debug

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            lines.all.withLock { $0.append((event.level, "\(event.message)", event.metadata ?? [:])) }
        }
    }

    @Suite struct SwiftLogTests {
        @Test func `a run's lines come to swift-log with the number of the job`() async throws {
            try await withQueue("log") { database, client in
                let lines = Kept.Lines()
                let logger = Logger(label: "jobs") { _ in Kept(lines: lines) }
                let worker = Worker(database: database, log: .debug, logReceiver: SwiftLogReceiver(logger))
                worker.handle(Receipt.self) { _, _ in .done }
                let id = try await client.enqueue(Receipt(order: 7))
                async let report = worker.run(handlesSignals: false)
                #expect(try await client.end(of: id) == .succeeded)
                worker.drain()
                #expect(try await report.finished == 1)
                let found = lines.all.withLock { $0 }
                #expect(found.contains { $0.metadata["job.id"] == .string("\(id)") && $0.level == .debug })
                #expect(found.contains { $0.level == .info })
            }
        }
    }
#endif
