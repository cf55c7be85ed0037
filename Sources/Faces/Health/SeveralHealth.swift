package import JSON
package import Listeners
package import Workers

/// One of the databases of a worker that serves several.
package struct DatabaseHealth: Sendable {
    package var name: String
    /// nil: it has not begun there.
    package var health: JobWorker.Health?
    /// Why it could not begin.
    package var refusal: String?
    /// Its own metrics; empty where it has not begun.
    package var metrics: @Sendable () async -> String

    package init(
        name: String, health: JobWorker.Health?, refusal: String?,
        metrics: @escaping @Sendable () async -> String = { "" }
    ) {
        (self.name, self.health, self.refusal, self.metrics) = (name, health, refusal, metrics)
    }

    package var readiness: (isReady: Bool, reason: String?) {
        guard let health else { return (false, "starting: " + (refusal ?? "waiting for the database")) }
        return HealthRoutes.readiness(health)
    }
}

/// The routes for health probes and metrics of a worker that serves several databases.
package enum SeveralHealth {
    package static func routes(
        _ databases: @escaping @Sendable () -> [DatabaseHealth], counts: @escaping @Sendable () -> Listener.Counts
    ) -> [Route] {
        [
            Route(.get, "/livez", access: .everyone) { _ in .json("{\"live\":true}\n") },
            Route(.get, "/readyz", access: .everyone) { _ in
                let (isReady, body) = readiness(databases())
                return .json(body.compact + "\n", status: isReady ? 200 : 503)
            },
            Route(.get, "/metrics", access: .token) { _ in
                let pages = await pages(of: databases())
                return .text(
                    DatabaseLabels.merged(pages) + Metrics.page(of: counts()), type: HealthRoutes.metricsType)
            },
        ]
    }

    /// It is ready while it takes jobs of any database: the outage of one is no reason to send work elsewhere.
    package static func readiness(_ databases: [DatabaseHealth]) -> (isReady: Bool, body: JSONValue) {
        let all = databases.map { (name: $0.name, found: $0.readiness) }
        let isReady = all.contains { $0.found.isReady }
        let reasons = all.compactMap { one in one.found.reason.map { "\(one.name): \($0)" } }
        let body: JSONValue = [
            "ready": .bool(isReady), "reason": JSONValue(isReady ? nil : reasons.joined(separator: "; ")),
            "databases": .object(
                all.map { name, found in
                    .init(
                        key: name, value: ["ready": .bool(found.isReady), "reason": JSONValue(found.reason)])
                }),
        ]
        return (isReady, body)
    }

    /// All at once: each asks its own database, and one that is slow holds up no other.
    private static func pages(of databases: [DatabaseHealth]) async -> [(database: String, page: String)] {
        await withTaskGroup(of: (Int, String).self) { group in
            for (place, database) in databases.enumerated() {
                group.addTask { (place, await page(of: database)) }
            }
            var pages = [String](repeating: "", count: databases.count)
            for await (place, page) in group { pages[place] = page }
            return zip(databases, pages).map { ($0.name, $1) }
        }
    }

    private static func page(of database: DatabaseHealth) async -> String {
        guard database.health == nil else { return await database.metrics() }
        // What has not begun is missing nowhere: an alert asks for these.
        return Metrics.absent
    }
}

/// Puts the label `database` on the numbers of several pages, and makes one page of them.
package enum DatabaseLabels {
    package static func merged(_ pages: [(database: String, page: String)]) -> String {
        var order: [Substring] = []
        var heads: [Substring: String] = [:]
        var values: [Substring: String] = [:]
        for (database, page) in pages {
            var name: Substring = ""
            for line in page.split(separator: "\n") {
                if line.hasPrefix("# ") {
                    name = line.dropFirst("# HELP ".count).prefix { $0 != " " }
                    if values[name] == nil {
                        order.append(name)
                        values[name] = ""
                    }
                    let head = heads[name] ?? ""
                    if !head.contains(line) { heads[name] = head + line + "\n" }
                } else {
                    values[name, default: ""] += labelled(line, database) + "\n"
                }
            }
        }
        return order.map { (heads[$0] ?? "") + (values[$0] ?? "") }.joined()
    }

    /// Names of databases hold nothing that has to be escaped.
    private static func labelled(_ line: Substring, _ database: String) -> String {
        let name = line.prefix { $0 != "{" && $0 != " " }
        let rest = line[name.endIndex...]
        return rest.first == "{"
            ? "\(name){database=\"\(database)\",\(rest.dropFirst())" : "\(name){database=\"\(database)\"}\(rest)"
    }
}
