import Foundation
import Postgres
import TestSupport
import Testing

/// What sql/states.md says of each state.
@Suite struct StateTests {
    static let doors = StatesPage.table("What may be done to it")
    static let events = StatesPage.table("What happens by itself")

    /// One way to do what a column says.
    enum Way: Sendable {
        /// A function that answers whether it did anything.
        case door(String)
        /// jobs_do: the deed, and whether the job was named.
        case page(String, Bool)
        /// An operation on this one job: the action and its arguments.
        case bulk(String, String)
        case flow(String)
        case replace
        case fork
    }

    static let ways: [String: [Way]] = [
        "cancel": [.door("cancel({})"), .page("cancel", true)],
        "cancel many": [.page("cancel", false), .bulk("cancel", "{}")],
        "cancel flow": [.flow("flow_cancel")],
        "retry": [.door("retry({})"), .page("retry", true), .page("retry", false), .bulk("retry", "{}")],
        "retry fresh": [.door("retry_fresh({})"), .page("retry_fresh", false), .bulk("retry_fresh", "{}")],
        "retry flow": [.flow("flow_retry")],
        "delete": [.door("job_delete({})"), .page("delete", true), .page("delete", false), .bulk("delete", "{}")],
        "reschedule": [
            .door("reschedule({}, millrace.now() + interval '1 day')"),
            .bulk("reschedule", #"{"run_at": "2090-01-01T00:00:00Z"}"#),
        ],
        "priority": [.door("job_priority({}, 1)"), .bulk("priority", #"{"priority": 1}"#)],
        "replace": [.replace],
        "fork": [.fork],
    ]

    @Test func `every state has its rows, and its job`() {
        let names = Set(StatesPage.table("Where a job is").map(\.name))
        #expect(names == Set(JobStates.all.keys))
        #expect(names == Set(Self.doors.map(\.name)))
        #expect(Set(Self.events.map(\.name)).isSubset(of: names))
        #expect(Set(Self.doors.flatMap { $0.cells.keys }) == Set(Self.ways.keys).union(["state"]))
    }

    @Test(arguments: doors.map(\.name))
    func `what is done to a job brings it where the table says, and back`(state: String) async throws {
        let row = try #require(Self.doors.first { $0.name == state })
        try await withConnection(.movableClock) { connection in
            let subject = try await Self.subject(state, connection)
            let before = try await connection.snapshot()
            let stood = try await connection.state(subject.id)
            for (column, ways) in Self.ways {
                guard let expected = row.cells[column], expected != "–" else { continue }
                for way in ways {
                    try await connection.run("begin; savepoint before")
                    let (word, operation) = try await Self.outcome(of: way, on: subject.id, connection)
                    #expect(word == expected, "\(column), \(way)")
                    if word == "stays" || word == "refused" {
                        #expect(try await connection.state(subject.id) == stood, "\(column), \(way)")
                    }
                    let faults = try await connection.faults()
                    #expect(faults.isEmpty, "\(column), \(way): \(faults)")
                    if let operation, word != "told" {
                        try await connection.undo(operation)
                        try await connection.settleFlows()
                        let after = try await connection.snapshot()
                        for (table, rows) in before { #expect(after[table] == rows, "\(column), undone: \(table)") }
                    }
                    try await connection.run("rollback")
                }
            }
        }
    }

    @Test(arguments: events.map(\.name))
    func `what happens by itself brings it where the table says`(state: String) async throws {
        let row = try #require(Self.events.first { $0.name == state })
        try await withConnection(.movableClock) { connection in
            let subject = try await Self.subject(state, connection)
            let stood = try await connection.state(subject.id)
            let events = row.cells.filter { $0.key != "state" && $0.key != "begun" }
            #expect(events.count == 7)
            for (event, expected) in events {
                try await connection.run("begin")
                try await Self.bring(event, to: subject, connection)
                try await connection.settleFlows()
                let stands = try await connection.state(subject.id) ?? "gone"
                #expect(stands == (expected.isEmpty ? stood : expected), "\(event)")
                let faults = try await connection.faults()
                #expect(faults.isEmpty, "\(event): \(faults)")
                try await connection.run("rollback")
            }
            let begun = try await connection.bool("select millrace.job_has_begun(\(subject.id))")
            #expect(begun == (row.cells["begun"] == "yes"))
        }
    }

    /// A table that speaks of jobs needs a row: what becomes of it?
    @Test func `every table that names jobs is in the list of what stands beside them`() async throws {
        let listed = StatesPage.table("What becomes of what stands beside it").map(\.name).joined()
        try await withConnection { connection in
            let tables = try await connection.column(
                """
                select distinct c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid
                 where c.relnamespace = 'millrace'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
                   and a.atttypid in ('bigint'::regtype, 'bigint[]'::regtype)
                   and a.attname in ('job', 'jobs', 'undo_job', 'pred', 'succ', 'next', 'ids', 'last_job', 'taken_by')
                """)
            #expect(tables.count > 25)
            for table in tables { #expect(listed.contains("`\(table)`"), "\(table)") }
        }
    }

    private static func subject(_ state: String, _ connection: Connection) async throws -> StateSubject {
        let build = try #require(JobStates.all[state])
        try await connection.run("select millrace.register_kinds('{test,other}', '{null,null}')")
        let subject = try await build(connection)
        if try await connection.int("select count(*) from millrace.session") == 0 { try await connection.openSession() }
        return subject
    }

    /// The word of the table, and the operation if that was the way.
    private static func outcome(
        of way: Way, on id: Int, _ connection: Connection
    ) async throws -> (word: String, operation: Int?) {
        let stood = try await connection.state(id)
        func word() async throws -> String {
            let now = try await connection.state(id) ?? "deleted"
            let isTold = try await connection.bool("select exists (select from millrace.cancel where job = \(id))")
            return isTold && now == "running" ? "told" : now
        }
        func refusal(_ sql: String) async throws -> Bool {
            guard let error = try await connection.refusal(of: sql) else { return false }
            #expect(error.sqlState == "55000", "\(sql): \(error.message)")
            try await connection.run("rollback to before")
            return true
        }
        switch way {
        case .door(let call):
            let sql = "millrace.\(call.replacing("{}", with: "\(id)"))"
            if try await refusal("create temp table said as select \(sql) as did") { return ("refused", nil) }
            return (try await connection.bool("select did from said") ? try await word() : "stays", nil)
        case .page(let deed, let named):
            let said = try await connection.value(
                "select outcome from millrace.jobs_do('\(deed)', array[\(id)], \(named))")
            switch said {
            case "done": return (try await word(), nil)
            case "nothing": return ("stays", nil)
            default:
                #expect(said == "55000")
                return ("refused", nil)
            }
        case .bulk(let action, let arguments):
            let operation = try await connection.start(action, "{\"ids\": [\(id)]}", arguments)
            try await connection.stepOperations()
            switch try await connection.counts(of: operation) {
            case "1 0 0 0 0": return (try await word(), operation)
            case "0 1 0 0 0": return ("stays", operation)
            case "0 0 1 0 0": return ("refused", operation)
            case let other: return (other ?? "nothing", operation)
            }
        case .flow(let door):
            if try await refusal("select millrace.\(door)(\(id))") { return ("refused", nil) }
            let now = try await word()
            return (now == stood ? "stays" : now, nil)
        case .replace:
            let new = try await connection.enqueue("'test', '9', unique_key => 'k', on_conflict => 'replace'")
            let follows = try await connection.bool(
                "select exists (select from millrace.unique_lock where job = \(id) and next = \(new))")
            if follows { return (stood == (try await word()) ? "followed" : "moved", nil) }
            #expect(new == id)
            #expect(try await connection.value("select args from millrace.job where id = \(id)") == "9")
            return (try await word(), nil)
        case .fork:
            if try await refusal("select millrace.fork(\(id))") { return ("refused", nil) }
            return ("forked", nil)
        }
    }

    private static func bring(_ event: String, to subject: StateSubject, _ connection: Connection) async throws {
        func end(_ ids: [Int], _ outcome: Int) async throws {
            for id in ids {
                let lease = "select number from millrace.lease where \(id) = any (ids)"
                if try await connection.value(lease) == nil {
                    try await connection.run("update millrace.queue set paused_at = null")
                    try await connection.claim(number: 800, kinds: ["other"])
                }
                let number = try await connection.int(lease)
                let left = try await connection.int(
                    "select count(*) from millrace.lease l, unnest(l.ids) u where l.number = \(number) and not exists (select from millrace.history h where h.id = u and h.number = l.number)"
                )
                try await connection.finish(
                    [.init(id: id, outcome: outcome, number: number, error: outcome == 3 ? "no" : nil)],
                    partial: left > 1 ? [number] : [], complete: left > 1 ? [:] : [number: 1])
            }
        }
        switch event {
        case "its time comes":
            try await connection.run(
                "select millrace.test_clock_advance('2 hours'); select millrace.promote(null, 100)")
        case "a signal":
            try await connection.run("select millrace.signal('paid'); select millrace.signals_tell()")
        case "an answer":
            try await connection.run(
                "select count(millrace.approval_answer(id, true)) from millrace.approval; select millrace.signals_tell()"
            )
        case "the others succeed": try await end(subject.others, 1)
        case "the others fail": try await end(subject.others, 3)
        case "the holder ends": try await end(subject.holder.map { [$0] } ?? [], 1)
        case "its worker dies": try await connection.run("select millrace.rescue(1, null)")
        default: Issue.record("\(event) is unknown")
        }
    }
}
