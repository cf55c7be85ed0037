import Postgres
import TestSupport
import Testing

@testable import MillraceQueues

/// Transactions that keep old row versions alive.
@Suite struct PinTests {
    @Test func `a transaction that has written and does nothing is named, and one that has only begun is not`()
        async throws
    {
        try await withDatabase { database in
            let observer = try await database.connect()
            let (writer, beginner) = (try await database.connect(), try await database.connect())
            try await writer.run("begin; select millrace.enqueue('test')")
            try await beginner.run("begin")
            let pins = try await Queue.pins(on: observer)
            #expect(pins.map(\.pid) == [try await writer.int("select pg_backend_pid()")])
            #expect(pins.first?.isIdle == true && pins.first?.isTooOld == false)
            try await writer.run("rollback")
            #expect(try await Queue.pins(on: observer).isEmpty)
            for connection in [observer, writer, beginner] { await connection.close() }
        }
    }

    @Test func `an idle transaction is too old after a minute, one at work after a quarter of an hour`() {
        func pin(_ state: String, _ age: Double) -> PinRow {
            PinRow(pid: 7, application: "psql", user: "ada", state: state, age: age)
        }
        #expect(pin("idle in transaction", 61).isTooOld && pin("idle in transaction (aborted)", 61).isTooOld)
        #expect(!pin("idle in transaction", 59).isTooOld && !pin("active", 899).isTooOld && pin("active", 901).isTooOld)
        #expect(pin("active", 1).owner == "psql, ada")
    }
}
