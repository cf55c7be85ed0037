package import Telemetry

extension Settings {
    package var log: Log {
        let level = Log.Level.allCases.first { "\($0)" == logLevel } ?? .info
        return .standardError(threshold: level, format: Log.Format(rawValue: logFormat) ?? .text)
    }
}
