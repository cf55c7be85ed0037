import Postgres
import TestSupport
import Testing

/// What has undone a step runs once more if its worker dies before the end is on record. It must not take what the job does again for what it is to
/// undo.
@Suite struct SecondRefundTests {
    enum Door: String, CaseIterable {
        case retry, retryFresh = "retry_fresh", flowRetry = "flow_retry", delete = "job_delete"
    }

    /// 1. A worker gives the money back and says so, and dies before the refund's end is on record. 2. Somebody runs the order again, or deletes it.
    /// 3. Another worker gets the refund.
    @Test(arguments: Door.allCases)
    func `a refund whose end is not on record is waited for, and a second run of it finds nothing`(door: Door)
        async throws
    {
        try await withConnection { connection in
            let order = try await connection.order(ending: 3)
            #expect(try await connection.claim(number: 48) == [order.refund])
            func found(_ number: Int) async throws -> [String] {
                try await connection.column("select name from millrace.steps_to_undo('1-\(number)-\(order.refund)')")
            }
            #expect(try await found(49) == ["charge"])
            try await connection.run("select millrace.step_undone('1-49-\(order.refund)')")
            func refused() async throws {
                let refusal = try await connection.refusal(of: "select millrace.\(door.rawValue)(\(order.id))")
                #expect(refusal?.sqlState == "55000")
                #expect(refusal?.message.contains("job \(order.refund)") == true, "\(refusal?.message ?? "done")")
                let deed = door == .delete ? "delete" : "retry"
                #expect(
                    try await connection.records("select outcome from millrace.jobs_do('\(deed)', array[\(order.id)])")
                        == ["(55000)"])
                let operation = try await connection.start(deed, "{\"ids\": [\(order.id)]}")
                try await connection.stepOperations()
                #expect(try await connection.counts(of: operation) == "0 0 1 0 0")
            }
            try await refused()
            try await connection.run("select millrace.leases_return(1, array[49])")
            try await refused()
            // The lease is lost: what this run would take for its own may be the order's next charge.
            let lost = try await connection.refusal(of: "select * from millrace.steps_to_undo('1-49-\(order.refund)')")
            #expect(lost?.sqlState == "55000")
            #expect(try await connection.claim(number: 64) == [order.refund])
            #expect(try await found(65) == [])
            try await connection.finish([.init(id: order.refund, outcome: 1, number: 65)], complete: [65: 1])
            #expect(try await connection.bool("select millrace.\(door.rawValue)(\(order.id)) is not null"))
            #expect(try await connection.state(order.id) == (door == .delete ? nil : "ready"))
        }
    }
}
