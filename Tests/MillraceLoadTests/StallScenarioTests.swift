import CommandKit
import Postgres
import TestSupport
import Testing

@testable import EngineLoad

/// `why` against stalls whose causes are known: the scenario `load stalls`, small.
@Suite struct StallScenarioTests {
    @Test func `each cause of a stall is told from the others, alone and in mixtures`() async throws {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            let pin = try await Pin(database.options)
            let score = try await StallScenario.score(on: connection, seed: 1, each: 4)
            #expect(score.complaints == [])
            #expect(score.all == 4 * StallCause.allCases.count && score.right == score.all)
            // Nothing of it is kept.
            #expect(try await connection.int("select count(*) from millrace.job") == 0)
            try await pin.release()
            await connection.close()
        }
    }

    @Test func `an answer that names another cause, or not who holds it, or no command, is wrong, and none is silence`()
        throws
    {
        var stall = Stall(cause: .queueLimit, companions: [], question: .job(1), mentions: ["job 7"])
        func verdict(_ json: String) throws -> StallVerdict { StallVerdict(stall, answer: try JSONValue.read(json)) }
        let right =
            #"{"reason": "queue_limit", "sentence": "full", "command": "c", "chain": ["seen", "held by job 7"]}"#
        #expect(try verdict(right) == .right)
        #expect(try verdict(right.replacing("queue_limit", with: "key_limit")) == .wrong("key_limit: full"))
        #expect(try verdict(right.replacing("job 7", with: "job 8")) != .right)
        #expect(try verdict(right.replacing(#""c""#, with: "null")) == .wrong("no command: full"))
        #expect(try verdict(right.replacing(#""seen", "#, with: "")) == .wrong("the chain has 1 steps: full"))
        #expect(try verdict("{}") == .silent)
        #expect(StallVerdict(stall, answer: nil) == .silent)
        let ended =
            #"{"reason": "ended_workers", "sentence": "2 workers ended", "command": "c", "chain": ["seen", "silent"]}"#
        stall = Stall(cause: .workerFrozen, companions: [], question: .job(1))
        #expect(try verdict(ended) == .wrong("ended_workers: 2 workers ended"))
        stall.companions = [.suspect]
        #expect(try verdict(ended) == .right)
        #expect(try verdict(ended.replacing("ended_workers", with: "worker_frozen")) != .right)
        stall = Stall(cause: .time, companions: [], question: .job(1))
        #expect(
            try verdict(#"{"reason": "time", "sentence": "later", "command": null, "chain": ["seen", "wait"]}"#)
                == .right
        )
    }

    @Test func `of the causes in a mixture none stands before the one that is the answer`() {
        for cause in StallCause.allCases where cause.place == .line {
            #expect(cause.companions.allSatisfy { $0.rank / 10 > cause.rank / 10 }, "\(cause)")
        }
    }
}
