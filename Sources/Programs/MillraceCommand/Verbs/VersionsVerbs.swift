import MillraceQueues
import Postgres

extension Command {
    static let versionsList = Command(
        ["versions", "list"],
        summary: "List the versions of the workers of the last 14 days, and the builds that are promoted",
        examples: [Example("millrace versions list", "what ran, since when, and which build gets new jobs")]
    ) { invocation in
        let (versions, builds) = try await invocation.withSchema { connection in
            (try await Queue.versions(on: connection), try await Queue.builds(on: connection))
        }
        invocation.console.show([
            "versions": .array(versions.map(\.json)), "builds": .array(builds.map(\.json)),
        ]) {
            invocation.console.print(VersionSeen.table(versions))
            if !builds.isEmpty {
                invocation.console.print("")
                invocation.console.print(BuildRow.table(builds))
            }
        }
        for build in builds {
            if let complaint = build.complaint {
                invocation.console.warning("\(complaint.sentence): start one, or run: \(complaint.command)")
            }
        }
        return .done
    }

    static let versionsCompare = Command(
        ["versions", "compare"],
        summary: "Compare two versions of the workers by failures, retries and duration of each kind",
        discussion: """
            A version is what the workers say (MILLRACE_BUILD). Without names the two newest are compared. The numbers come \
            from samples of the last 14 days: what a killed worker had ended since its last beat is missing. p95 is accurate \
            to within a fifth. A kind counts as worse when at least 10 runs ended on each side and its share of failures doubled \
            and grew by a point, or its mean duration grew by half.
            """,
        arguments: [
            Argument("before", .optional, help: "the earlier version"),
            Argument("after", .optional, help: "the later version"),
        ],
        examples: [
            Example("millrace versions compare", "the two newest"),
            Example("millrace versions compare 1.4.0 1.5.0 --json", "two by name, for a program"),
        ]
    ) { invocation in
        let given = [invocation.parsed.string("before"), invocation.parsed.string("after")].compactMap(\.self)
        let (names, kinds) = try await invocation.withSchema { connection in
            let names = try await Self.pair(given, on: connection)
            do throws(PostgresError) {
                return (names, try await Queue.compareVersions(names.before, names.after, on: connection))
            } catch {
                guard error.sqlState == "P0002" else { throw error }
                throw Failure(
                    .notFound, DatabaseFailure(error).sentence, hint: "millrace versions list shows those that are kept"
                )
            }
        }
        let comparison = ComparedVersions(before: names.before, after: names.after, kinds: kinds)
        invocation.console.show(comparison.json) {
            invocation.console.print("\(names.before) → \(names.after)")
            invocation.console.print(comparison.table)
        }
        return .done
    }

    private static func pair(
        _ given: [String], on connection: Connection
    ) async throws -> (before: String, after: String) {
        if given.count == 2 { return (given[0], given[1]) }
        guard given.isEmpty else {
            throw Failure(
                .misused, "<after> is missing: name two versions, or none", hint: "see millrace versions list")
        }
        let newest = try await Queue.versions(most: 2, on: connection)
        guard newest.count == 2 else {
            throw Failure(
                .notFound,
                "there are not two versions to compare: samples know \(Humane.count(newest.count, "version"))",
                hint: "workers say their version in MILLRACE_BUILD")
        }
        return (newest[1].version, newest[0].version)
    }
}

extension VersionSeen {
    var json: JSONValue {
        [
            "worker_version": .string(version), "first_at": JSONValue(firstAt), "last_at": JSONValue(lastAt),
            "workers": .int(workers),
        ]
    }

    static func table(_ versions: [VersionSeen]) -> Table {
        var table = Table(
            [
                Table.Column("version", shrinks: true, importance: .key), Table.Column("first", importance: .high),
                Table.Column("last"), Table.Column("workers now", .trailing, importance: .high),
            ], whenEmpty: "no version has been sampled yet")
        for version in versions {
            table.add([
                Table.Cell(version.version, .bold), Table.Cell(InstantText.spell(version.firstAt)),
                Table.Cell(InstantText.spell(version.lastAt)), Table.Cell(Humane.count(version.workers)),
            ])
        }
        return table
    }
}

/// Two versions side by side.
struct ComparedVersions {
    let before, after: String
    let kinds: [VersionComparison]

    var json: JSONValue {
        [
            "before": .string(before), "after": .string(after),
            "kinds": .array(
                kinds.map {
                    [
                        "kind": .string($0.kind), "worse": .bool($0.isWorse),
                        "before": $0.before.map(\.json) ?? .null, "after": $0.after.map(\.json) ?? .null,
                    ]
                }),
        ]
    }

    var table: Table {
        var table = Table(
            [
                Table.Column("kind", shrinks: true, importance: .key), Table.Column("runs", .trailing),
                Table.Column("failed", .trailing, importance: .high), Table.Column("retried", .trailing),
                Table.Column("mean", .trailing, importance: .high), Table.Column("p95", .trailing),
                Table.Column("", importance: .high),
            ], whenEmpty: "neither has ended a run")
        for kind in kinds {
            func pair(_ text: (VersionRuns) -> String) -> String {
                "\(kind.before.map(text) ?? "-") → \(kind.after.map(text) ?? "-")"
            }
            func time(_ seconds: Double?) -> String { seconds.map { Humane.duration(.seconds($0)) } ?? "-" }
            table.add([
                Table.Cell(kind.kind, .bold), Table.Cell(pair { Humane.count($0.runs) }),
                Table.Cell(pair { Humane.percent($0.failedShare) }),
                Table.Cell(pair { Humane.percent($0.retriedShare) }),
                Table.Cell(pair { time($0.run) }), Table.Cell(pair { time($0.p95) }),
                Table.Cell(kind.isWorse ? "worse" : "", .red),
            ])
        }
        return table
    }
}

extension VersionRuns {
    fileprivate var json: JSONValue {
        [
            "runs": .int(runs), "failed": .int(failed), "failed_share": .double(failedShare), "retried": .int(retried),
            "retried_share": .double(retriedShare), "dead": .int(dead),
            "run_seconds": run.map(JSONValue.double) ?? .null, "p95_seconds": p95.map(JSONValue.double) ?? .null,
        ]
    }
}

extension VersionComparison {
    /// Enough runs on both sides, and clearly more failures or longer runs.
    var isWorse: Bool {
        guard let before, let after, before.runs >= 10, after.runs >= 10 else { return false }
        let fails = after.failedShare >= 2 * before.failedShare && after.failedShare - before.failedShare >= 0.01
        let lasts = (after.run ?? 0) >= 1.5 * (before.run ?? .infinity)
        return fails || lasts
    }
}
