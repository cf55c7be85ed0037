import Telemetry

extension Settings {
    var log: Log {
        let level = Log.Level.allCases.first { "\($0)" == logLevel } ?? .info
        return .standardError(threshold: level, format: Log.Format(rawValue: logFormat) ?? .text)
    }
}
