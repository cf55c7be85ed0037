package import Listeners
package import Telemetry

/// One console over several databases: a start page with a line for each, and below it the pages of each, at `/console/NAME`.
///
/// People sign in once, on the start page. A page of a database reads that database alone.
package struct SeveralConsole: Sendable {
    private let start: ConsoleService
    private let members: [ConsoleService]

    /// - Parameters:
    ///   - members: the options of each have its place, and all have the same access.
    ///   - glances: in the order in which they are shown.
    package init(
        _ options: ConsoleService.Options, members: [ConsoleService], glances: [DatabaseGlance], log: Log
    ) throws {
        var members = members
        let all = members.map(\.ended)
        for index in members.indices { members[index].sessions.told = all }
        self.members = members
        start = try ConsoleService(
            options, glances: glances,
            sessions: SessionEnds(asked: all, told: all, passesOver: true), log: log)
    }

    package var asksNobody: Bool { start.asksNobody }

    /// Those of the databases go before the start page's.
    package var routes: [Route] { members.flatMap(\.routes) + start.routes }

    package func run() async {
        await withTaskGroup(of: Void.self) { group in
            for member in members { group.addTask { await member.run() } }
        }
    }
}

enum StartPage {
    /// How long a page waits for a database.
    private static let limit = Duration.milliseconds(2500)

    static func page(_ glances: [DatabaseGlance], within limit: Duration = StartPage.limit) async -> ConsolePage {
        let found = await withTaskGroup(of: (Int, Result<DatabaseGlance.Reading, DatabaseGlance.Unread>).self) {
            group in
            for (place, glance) in glances.enumerated() {
                group.addTask { (place, await glance.now(within: limit)) }
            }
            var found: [(Int, Result<DatabaseGlance.Reading, DatabaseGlance.Unread>)] = []
            for await one in group { found.append(one) }
            return found.sorted { $0.0 < $1.0 }.map(\.1)
        }
        let table = ConsoleTable(
            columns: [
                .text("Database"), .text("State"), .number("Workers"), .number("Ready"), .number("Oldest ready"),
                .text("What needs attention"),
            ],
            rows: zip(glances, found).map { row(of: $0.name, $1) }, empty: "No database is named.")
        return ConsolePage(title: "Databases", entry: "Databases", parts: [.table(table)])
    }

    private static func row(
        of name: String, _ found: Result<DatabaseGlance.Reading, DatabaseGlance.Unread>
    ) -> [ConsoleCell] {
        let link = ConsoleCell(name, href: ConsolePlace(database: name).base)
        switch found {
        case .failure(let unread):
            return [
                link, .state("UNKNOWN", tone: "bad"), .none, .none, .none, ConsoleCell(unread.sentence, tone: "bad"),
            ]
        case .success(let reading):
            let silent = reading.silent > 0 ? ", \(reading.silent) silent" : ""
            var workers = ConsoleCell.count(reading.workers)
            workers.text += silent
            var ready = ConsoleCell.count(reading.ready)
            if reading.isMore { ready.text += "+" }
            let more = reading.findings.count > 1 ? ", and \(reading.findings.count - 1) more" : ""
            return [
                link, .state(reading.word, tone: StateTone.of(reading.word)), workers, ready, .span(reading.oldest),
                reading.findings.first.map { ConsoleCell($0 + more) } ?? ConsoleCell("nothing", tone: "quiet"),
            ]
        }
    }
}
