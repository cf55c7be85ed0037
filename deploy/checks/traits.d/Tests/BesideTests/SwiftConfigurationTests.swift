#if SwiftConfiguration
    import Configuration
    import Foundation
    import Millrace
    import MillraceSwiftConfiguration
    import Testing

    @Suite struct SwiftConfigurationTests {
        @Test func `a worker has its database, queues and slots from a reader`() async throws {
            try await withQueue("configured") { _, client in
                let url = try #require(ProcessInfo.processInfo.environment["BESIDE_URL_CONFIGURED"])
                let config = ConfigReader(
                    provider: EnvironmentVariablesProvider(environmentVariables: [
                        "DATABASE_URL": url, "MILLRACE_QUEUES": "mail:2,letters", "MILLRACE_DRAIN_TIMEOUT": "5s",
                        "MILLRACE_LOG_LEVEL": "error",
                    ]))
                let worker = try Worker(config: config)
                worker.handle(Receipt.self) { _, _ in .done }
                async let report = worker.run(handlesSignals: false)
                let served = try await client.enqueue(Receipt(order: 1), options: EnqueueOptions(queue: "letters"))
                let other = try await client.enqueue(Receipt(order: 2), options: EnqueueOptions(queue: "elsewhere"))
                #expect(try await client.end(of: served) == .succeeded)
                worker.drain()
                #expect(try await report.finished == 1)
                #expect(try await client.job(other)?.state == .ready)
            }
        }

        @Test func `numbers and flags of a file are settings too, and a setting has the key of its variable`() {
            let settings = ConfigSettings(
                ConfigReader(
                    provider: InMemoryProvider(values: [
                        "millrace.slots": 40, "millrace.only-build": true, "millrace.drain-timeout": "2m",
                        "otel.exporter-otlp-endpoint": "http://127.0.0.1:4318",
                    ])))
            let names = [
                "MILLRACE_SLOTS", "MILLRACE_ONLY_BUILD", "MILLRACE_DRAIN_TIMEOUT", "OTEL_EXPORTER_OTLP_ENDPOINT",
                "MILLRACE_ABSENT",
            ]
            #expect(
                settings.values(of: names) == [
                    "MILLRACE_SLOTS": "40", "MILLRACE_ONLY_BUILD": "on", "MILLRACE_DRAIN_TIMEOUT": "2m",
                    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318",
                ])
        }

        @Test(arguments: [
            ("millrace.slots", "many"), ("millrace.drain-timeout", "soon"), ("millrace.queues", "mail:some"),
            ("millrace.log-level", "loud"),
        ])
        func `a setting that cannot be used is named`(key: String, text: String) throws {
            let config = ConfigReader(
                provider: InMemoryProvider(values: [
                    AbsoluteConfigKey(key.split(separator: ".").map(String.init)): .init(.string(text), isSecret: false)
                ]))
            let failure = #expect(throws: QueueError.self) { try Worker(config: config) }
            #expect(failure?.errorClass == .misconfigured && failure?.description.contains(text) == true)
        }
    }
#endif
