import MillraceQueues
import Postgres

/// What may slow the queue down or stop it from outside.
extension Doctor {
    func dangers() async -> [Check] {
        var checks: [Check] = []
        do throws(PostgresError) {
            let rows = try await Queue.dangers(on: connection, deadline: .seconds(10))
            checks += Self.judge(rows).map { Check(subject: $0.0, result: $0.1) }
        } catch {
            checks.append(await look(.locks) { () throws(PostgresError) in throw error })
        }
        checks.append(await look(.disk) { () throws(PostgresError) in try await disk() })
        checks.append(await look(.origin) { () throws(PostgresError) in try await origin() })
        return checks
    }

    static func judge(_ rows: [DangerRow]) -> [(Subject, Check.Result)] {
        let rows = DangerRow.once(rows)
        func worst(_ sorts: [DangerRow.Sort], ok: String) -> Check.Result {
            let found = rows.filter { sorts.contains($0.sort) && $0.isWorthAWarning }.map(\.sentence)
            guard let first = rows.first(where: { sorts.contains($0.sort) && $0.isWorthAWarning }) else {
                return .ok(ok)
            }
            return .warning(found.joined(separator: "; "), advice: first.command)
        }
        let kept = rows.filter { [.transaction, .prepared, .slot, .standby].contains($0.sort) }.map(\.amount).max()
        let numbers = [DangerRow.Sort.transactionIDs, .multixacts].compactMap { sort in
            rows.first { $0.sort == sort }?.sentence
        }
        return [
            (
                .oldVersions,
                worst(
                    [.transaction, .prepared, .slot, .standby],
                    ok: "those of the last \(Humane.count(kept ?? 0, "transaction")) are kept")
            ),
            (.subtransactions, worst([.subtransactions], ok: "no transaction has more than 64")),
            (.locks, worst([.blocker, .rows, .locks, .notify], ok: "nobody holds up the queue")),
            (.catalogue, worst([.catalogue], ok: "few dead rows")),
            (
                .identifiers,
                worst([.freeze, .transactionIDs, .multixacts], ok: numbers.joined(separator: "; "))
            ),
        ]
    }

    /// `status` asks only where a worker is silent.
    private func disk() async throws(PostgresError) -> Check.Result {
        do throws(PostgresError) {
            try await Queue.tryWriting(on: connection, deadline: .seconds(10))
            return .ok("half a megabyte was written, and taken back")
        } catch {
            if error.sqlState == "42501" { return .ok("this role may not try") }
            guard case .server(let server) = error, ["53100", "25006"].contains(server.sqlState) else { throw error }
            return .problem(
                "the database takes no writes: \(server.message)",
                advice: "free space on the server: replication slots that nobody reads, old logs, pg_wal")
        }
    }

    private func origin() async throws(PostgresError) -> Check.Result {
        do throws(PostgresError) {
            return Self.judge(try await Queue.origin(on: connection))
        } catch {
            guard error.sqlState == "42501" else { throw error }
            return .ok("the schema's owner may ask")
        }
    }

    static func judge(_ origin: SchemaOrigin) -> Check.Result {
        guard let made = origin.migratedOn, let now = origin.server else { return .ok("not known") }
        guard made != now else { return .ok("it was migrated on this server") }
        return .warning(
            "it was migrated on another server (\(made), and this is \(now)): it is a copy, or was moved or upgraded; "
                + "its workers act for real, and jobs that ran since the copy run again",
            advice:
                "before workers start: deploy/guides/backup.md; then millrace migrate, which takes this server as its own"
        )
    }
}
