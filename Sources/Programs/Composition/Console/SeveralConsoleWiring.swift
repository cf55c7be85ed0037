import CommandKit
package import Console
import FoundationEssentials
import MillraceQueues
package import Postgres
import StatusKit

extension Composer {
    /// One console over the databases that the settings name, and the connections of its pages.
    package func severalConsole(version: String) throws(Failure) -> (console: SeveralConsole, pools: [Pool]) {
        let shared = consoleOptions(version)
        var members: [ConsoleService] = []
        var glances: [DatabaseGlance] = []
        var pools: [Pool] = []
        for database in settings.databases {
            guard !ConsolePlace.taken.contains(database.name) else {
                throw Failure(
                    .misused,
                    "a database called \(database.name) has no address in the console, which has a page there",
                    hint: "give it another name in MILLRACE_DATABASES")
            }
            let composer = of(database)
            let pool = ConsoleService.connections(composer.database, size: 8)
            pools.append(pool)
            members.append(
                try composer.console(pool: pool, version: version, keepsHouse: true) { options in
                    options.access = shared.access
                    options.place = ConsolePlace(database: database.name)
                })
            glances.append(.reading(database.name, known, pool))
        }
        do {
            return (try SeveralConsole(shared, members: members, glances: glances, log: log), pools)
        } catch {
            throw Failure("the console cannot start: \(error)")
        }
    }
}

extension DatabaseGlance {
    fileprivate static func reading(_ name: String, _ rooms: [Room], _ pool: Pool) -> DatabaseGlance {
        DatabaseGlance(name: name) { () async throws(Unread) in
            do {
                return try await pool.withConnection { connection in
                    try await SchemaCheck.check(on: connection)
                    let report = try await StatusReport.read(
                        of: rooms, on: connection, cap: 50, patience: .seconds(2))
                    return Reading(of: report)
                }
            } catch let failure as any CommandFailure {
                throw Unread(sentence: failure.sentence)
            } catch let error as PostgresError {
                throw Unread(sentence: DatabaseFailure(error).sentence)
            } catch {
                throw Unread(sentence: "the database cannot be read: \(type(of: error))")
            }
        }
    }
}

extension DatabaseGlance.Reading {
    fileprivate init(of report: StatusReport) {
        let groups = FindingGroup.all(of: report.findings)
        let worst = groups.map(\.severity).max() ?? .ok
        self.init(word: worst.word, findings: groups.map(\.sentence))
        if let found = report.workers.value {
            workers = found.count { !$0.isSilent }
            silent = found.count(where: \.isSilent)
        }
        guard let queues = report.queues.value else { return }
        ready = queues.reduce(0) { $0 + ($1.estimated ?? $1.ready) }
        isMore = queues.contains { $0.estimated == nil && $0.ready >= report.cap ?? .max }
        oldest = queues.compactMap(\.oldestAge).max()
    }
}
