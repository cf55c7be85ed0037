#if SwiftLog && SwiftMetrics && ServiceLifecycle && PostgresNIO
    import Logging
    import Millrace
    import MillracePostgresNIO
    import MillraceServiceLifecycle
    import MillraceSwiftLog
    import MillraceSwiftMetrics
    import PostgresNIO
    import ServiceLifecycle

    // The code of deploy/guides/server-swift.md, word by word. It is compiled, not run.
    func aWorkerBesideAServer(_ server: any Service, _ logger: Logger) async throws {
        let worker = Worker(log: .info, logReceiver: SwiftLogReceiver(logger), metrics: SwiftMetricsReceiver())
        worker.handle(Receipt.self, queue: "mail") { receipt, context in
            .done
        }
        let group = ServiceGroup(
            services: [server, WorkerService(worker)], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        try await group.run()
    }

    func inATransaction(_ postgres: PostgresClient, _ logger: Logger) async throws {
        try await postgres.withTransaction(logger: logger) { connection in
            try await connection.query("insert into orders (id) values (\(7))", logger: logger)
            try await Receipt(order: 7).enqueue(
                on: connection, options: EnqueueOptions(uniqueKey: "receipt-7"), logger: logger)
        }
    }
#endif

// The rest of it, with the traits that it needs.
#if Tracing
    import Millrace
    import MillraceTracing
    import Tracing

    func tracing(_ tracer: some Tracer, _ client: Client) {
        InstrumentationSystem.bootstrap(tracer)
        client.useTracing()
        let worker = Worker(spans: TracingReceiver())
        _ = worker
    }
#endif

#if SwiftConfiguration
    import Configuration
    import Millrace
    import MillraceSwiftConfiguration

    func settings() throws {
        let config = ConfigReader(provider: EnvironmentVariablesProvider())
        let worker = try Worker(config: config)
        let client = try Client(database: ConfigSettings(config).database)
        _ = (worker, client)
    }
#endif
