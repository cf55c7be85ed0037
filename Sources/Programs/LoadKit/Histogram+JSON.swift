package import CommandKit
package import Telemetry

extension Histogram {
    /// In milliseconds.
    package var json: JSONValue {
        [
            "count": .int(Int(count)), "p50_ms": .double(milliseconds(at: 0.5)),
            "p99_ms": .double(milliseconds(at: 0.99)),
            "max_ms": .double(mostMilliseconds),
        ]
    }

    /// One line for a person.
    package var summary: String {
        guard count > 0 else { return "none" }
        let values = [milliseconds(at: 0.5), milliseconds(at: 0.99), mostMilliseconds]
        return zip(["p50", "p99", "max"], values).map { "\($0) \(Humane.decimal($1, places: $1 < 10 ? 2 : 0)) ms" }
            .joined(separator: ", ")
    }
}
