#if SwiftConfiguration
    public import Configuration
    public import Millrace

    /// Millrace's settings in a `ConfigReader` of swift-configuration. A setting has the key that stands for its variable: the first word, a dot,
    /// and the rest with hyphens. `MILLRACE_DRAIN_TIMEOUT` is `millrace.drain-timeout`, `DATABASE_URL` is `database.url`.
    ///
    /// ```swift
    /// let config = ConfigReader(provider: EnvironmentVariablesProvider())
    /// let worker = try Worker(config: config)
    /// let client = try Client(database: ConfigSettings(config).database)
    /// ```
    /// A complete worker takes all of its settings so:
    /// `CompleteWorker.Options(settings: ConfigSettings(config).values(of: CompleteWorker.Options.settingNames))`.
    @available(macOS 15, iOS 18, *)
    public struct ConfigSettings: Sendable {
        private let config: ConfigReader

        /// Reads from here.
        public init(_ config: ConfigReader) {
            self.config = config
        }

        /// A setting by its variable's name, as text; nil: it is not there. Numbers and flags of a file become text.
        public subscript(name: String) -> String? {
            let words = name.lowercased().split(separator: "_", maxSplits: 1).map(String.init)
            let key = ConfigKey(words.map { $0.replacing("_", with: "-") })
            let secret = Self.isSecret(name)
            if let text = config.string(forKey: key, isSecret: secret) { return text }
            if let number = config.int(forKey: key, isSecret: secret) { return "\(number)" }
            if let number = config.double(forKey: key, isSecret: secret) { return "\(number)" }
            return config.bool(forKey: key, isSecret: secret).map { $0 ? "on" : "off" }
        }

        /// Those of these settings that are there, by their variables' names.
        public func values(of names: [String]) -> [String: String] {
            names.reduce(into: [:]) { $0[$1] = self[$1] }
        }

        /// The database of `DATABASE_URL` and `MILLRACE_DIRECT_URL`; that of the environment where neither is there.
        public var database: Database {
            self["DATABASE_URL"].map { .url($0, directURL: self["MILLRACE_DIRECT_URL"]) } ?? .environment
        }

        /// The keys of `MILLRACE_ENCRYPTION_KEY`; those of the environment where it is not there.
        public var keys: EncryptionKeys { self["MILLRACE_ENCRYPTION_KEY"].map { .list($0) } ?? .environment }

        /// What an access reporter of the program must not print.
        private static func isSecret(_ name: String) -> Bool {
            ["KEY", "TOKEN", "SECRET", "PASSWORD", "URL", "HEADERS"].contains { name.contains($0) }
        }
    }
#endif
