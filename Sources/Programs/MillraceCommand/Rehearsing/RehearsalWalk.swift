package import Encryption
import MillraceQueues
package import Postgres
import Workers

/// Takes a build through the jobs of a database: a sample of those that are not under way, then all that are, a few megabytes at a time.
package struct RehearsalWalk: Sendable {
    private static let page = 2000
    private static let noteEvery = 10_000

    private let build: RehearsedBuild
    private let kinds: Set<String>
    private let only: String?
    private let sample: Int
    private let keys: Keyring
    private let console: Console

    /// - Parameter only: nil: all kinds.
    package init(
        build: RehearsedBuild, kinds: [String], only: String?, sample: Int, keys: Keyring, console: Console
    ) {
        self.build = build
        self.kinds = Set(kinds)
        self.only = only
        self.sample = sample
        self.keys = keys
        self.console = console
    }

    package func run(on connection: Connection) async throws -> RehearsalReport {
        var report = RehearsalReport()
        var seen: Set<Int64> = []
        for kind in only.map({ [$0] }) ?? kinds.sorted() {
            let ids = try await Queue.rehearsalSample(of: kind, most: sample, on: connection).sorted()
            seen.formUnion(ids)
            try await rehearse(ids, &report, on: connection)
        }
        var after: Int64 = 0
        while true {
            let page = try await Queue.underWay(after: after, page: Self.page, on: connection)
            guard let last = page.last else { return report }
            var ids: [Int64] = []
            for (id, kind) in page where !seen.contains(id) && (only == nil || only == kind) {
                // Another program may have it.
                if kinds.contains(kind) || only != nil {
                    ids.append(id)
                } else {
                    report.skip(kind, "the new build has no handler for it")
                }
            }
            try await rehearse(ids, &report, on: connection)
            after = last.id
        }
    }

    private func rehearse(_ ids: [Int64], _ report: inout RehearsalReport, on connection: Connection) async throws {
        var rest = ids[...]
        while !rest.isEmpty {
            let rows = try await Queue.rehearsalRows(Array(rest), on: connection)
            guard let last = rows.last else { return }
            for row in rows { try await rehearse(row, &report) }
            rest = rest.dropFirst(last.place)
        }
    }

    private func rehearse(_ row: RehearsalRow, _ report: inout RehearsalReport) async throws {
        let one: RehearsalCase
        do {
            one = try RehearsalCase(row, keys: keys)
        } catch is SealError {
            return report.skip(row.kind, "its arguments are encrypted with a key that is not here")
        }
        guard let findings = try await build.rehearse(one) else {
            return report.skip(row.kind, "its handler hangs or crashes")
        }
        report.add(one.job, findings)
        if report.rehearsed.isMultiple(of: Self.noteEvery) {
            console.note("\(Humane.count(report.rehearsed)) jobs rehearsed, \(Humane.count(report.found)) named")
        }
    }
}
