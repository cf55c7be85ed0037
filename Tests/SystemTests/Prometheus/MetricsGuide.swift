import Foundation
import MillraceCommand
import TestSupport

/// What deploy/guides/metrics.md says there is, and what rules and dashboard ask for.
enum MetricsGuide {
    private static func text(_ page: String) throws -> String {
        try String(contentsOf: Snippet.root.appending(path: page), encoding: .utf8)
    }

    /// Names with their labels.
    static func metrics() throws -> [String: Set<String>] {
        let rows = try text("deploy/guides/metrics.md").matches(of: #/\| `(millrace_[a-z_]+)(?:\{([a-z, ]+)\})?` \|/#)
        return Dictionary(
            rows.map { row in
                (
                    String(row.1),
                    Set((row.2 ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) })
                )
            }, uniquingKeysWith: { $0.union($1) })
    }

    /// The metrics of a page, each with the labels that its series have; none: it has no series.
    static func metrics(of page: String) -> [String: Set<String>] {
        var found: [String: Set<String>] = [:]
        var histograms: Set<String> = []
        for line in page.split(separator: "\n") {
            if let type = line.firstMatch(of: /^# TYPE (\w+) (\w+)$/) {
                found[String(type.1)] = []
                if type.2 == "histogram" { histograms.insert(String(type.1)) }
            } else if let series = line.firstMatch(of: #/^(\w+)(?:\{(.*)\})? /#) {
                let name = String(series.1)
                let base = histograms.first { ["_bucket", "_sum", "_count"].map($0.appending).contains(name) } ?? name
                let labels = (series.2 ?? "").matches(of: #/(\w+)="(?:[^"\\]|\\.)*"/#).map { String($0.1) }
                found[base, default: []].formUnion(labels.filter { $0 != "le" })
            }
        }
        return found
    }

    /// Every expression of the dashboard, as Prometheus would get it.
    static func dashboardExpressions() throws -> [String] {
        struct Board: Decodable {
            struct Panel: Decodable { let targets: [Query]? }
            struct Query: Decodable { let expr: String? }
            struct Annotations: Decodable { let list: [Query] }
            let panels: [Panel]
            let annotations: Annotations
        }
        let board = try JSONDecoder().decode(Board.self, from: Data(text("deploy/observability/dashboard.json").utf8))
        return (board.panels.flatMap { $0.targets ?? [] } + board.annotations.list).compactMap(\.expr).map {
            $0.replacing("$__rate_interval", with: "1m").replacing("$job", with: "millrace")
                .replacing(/\$(?:queue|kind)/, with: ".*")
        }
    }

    static func ruleExpressions() throws -> [String] {
        try text("deploy/observability/rules.yml").components(separatedBy: "expr: ").dropFirst().map { part in
            String(part.prefix(upTo: part.range(of: "\n        labels:")?.lowerBound ?? part.endIndex))
        }
    }

    /// The metrics that an expression names, each with the labels that it selects by, and the labels by which it groups or joins.
    static func uses(of expression: String) -> (metrics: [(name: String, labels: Set<String>)], groups: Set<String>) {
        let metrics = expression.matches(of: #/(millrace_[a-z_]+)\b(?:\{([^}]*)\})?/#).map { use in
            (
                name: String(use.1),
                labels: Set((use.2 ?? "").matches(of: #/(\w+)\s*(?:=~|!~|!=|=)/#).map { String($0.1) })
            )
        }
        let groups = expression.matches(of: #/\b(?:by|on) \(([^)]*)\)/#).flatMap { group in
            group.1.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        return (metrics, Set(groups))
    }
}
