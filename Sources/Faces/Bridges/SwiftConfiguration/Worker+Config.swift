#if SwiftConfiguration
    public import Configuration
    public import Millrace

    @available(macOS 15, iOS 18, *)
    extension Worker {
        /// A worker of these settings: `DATABASE_URL`, `MILLRACE_DIRECT_URL`, `MILLRACE_ENCRYPTION_KEY`, `MILLRACE_SLOTS`, `MILLRACE_QUEUES`,
        /// `MILLRACE_DRAIN_TIMEOUT` and `MILLRACE_LOG_LEVEL`, by the keys of ``ConfigSettings``. One that cannot be used is an error of the class
        /// `misconfigured`.
        public convenience init(
            config: ConfigReader, logReceiver: (any LogReceiver)? = nil, metrics: (any MetricsReceiver)? = nil,
            spans: (any SpanReceiver)? = nil
        ) throws(QueueError) {
            let settings = ConfigSettings(config)
            self.init(
                database: settings.database, slots: try settings.slots ?? 100, queues: try settings.queues,
                drainTimeout: try settings.drainTimeout ?? .seconds(30), keys: settings.keys,
                log: try settings.logLevel ?? .info, logReceiver: logReceiver, metrics: metrics, spans: spans)
        }
    }

    @available(macOS 15, iOS 18, *)
    extension ConfigSettings {
        private func read<Value>(
            _ name: String, _ expected: String, _ body: (String) -> Value?
        ) throws(QueueError) -> Value? {
            guard let text = self[name], !text.isEmpty else { return nil }
            guard let value = body(text) else {
                throw QueueError(.misconfigured, "\(name) takes \(expected), and is “\(text.prefix(40))”.")
            }
            return value
        }

        fileprivate var slots: Int? {
            get throws(QueueError) {
                try read("MILLRACE_SLOTS", "a number from 1 to 10000") { text in
                    Int(text).flatMap { (1...10_000).contains($0) ? $0 : nil }
                }
            }
        }

        fileprivate var drainTimeout: Duration? {
            get throws(QueueError) {
                try read("MILLRACE_DRAIN_TIMEOUT", "a duration such as 30s, 500ms or 2m") { text in
                    let digits = text.prefix { $0.isASCII && $0.isNumber }
                    guard let count = Int64(digits), count < 1_000_000_000 else { return nil }
                    switch text.dropFirst(digits.count) {
                    case "ms": return .milliseconds(count)
                    case "s", "": return .seconds(count)
                    case "m": return .seconds(count * 60)
                    case "h": return .seconds(count * 3600)
                    default: return nil
                    }
                }
            }
        }

        fileprivate var queues: [String: Int?] {
            get throws(QueueError) {
                try read("MILLRACE_QUEUES", "queues such as mail:20,default") { text in
                    var queues: [String: Int?] = [:]
                    for part in text.split(separator: ",") {
                        let halves = part.split(separator: ":", maxSplits: 1).map { $0.filter { $0 != " " } }
                        guard let name = halves.first, !name.isEmpty else { return nil }
                        let bound = halves.count > 1 ? Int(halves[1]) : nil
                        if halves.count > 1, bound == nil { return nil }
                        if name != "*" { queues.updateValue(bound, forKey: name) }
                    }
                    return queues
                } ?? [:]
            }
        }

        fileprivate var logLevel: Worker.LogLevel? {
            get throws(QueueError) {
                try read("MILLRACE_LOG_LEVEL", "debug, info, warning or error") { text in
                    switch text {
                    case "debug": .debug
                    case "info": .info
                    case "warning", "error": .warning
                    default: nil
                    }
                }
            }
        }
    }
#endif
