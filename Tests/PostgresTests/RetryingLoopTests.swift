import Postgres
import Testing

@Suite struct RetryingLoopTests {
    private struct Trouble: Error {}

    @Test func `turns follow each other until one ends the loop or the condition says no`() async {
        var turns = 0
        await RetryingLoop.run { loop throws(Trouble) in
            turns += 1
            if turns == 3 { loop.end() }
        } failed: { _ in
            .end
        }
        #expect(turns == 3)
        await RetryingLoop.run(while: { turns < 5 }) { _ throws(Trouble) in
            turns += 1
        } failed: { _ in
            .end
        }
        #expect(turns == 5)
    }

    @Test func `a failure is told, and says whether another turn follows`() async {
        var (turns, failures) = (0, 0)
        await RetryingLoop.run(cap: .microseconds(1)) { _ throws(Trouble) in
            turns += 1
            throw Trouble()
        } failed: { _ in
            failures += 1
            return failures == 1 ? .pause : failures == 2 ? .atOnce : .end
        }
        #expect(turns == 3 && failures == 3)
    }

    @Test func `a cancelled task ends the loop, and its pause`() async {
        let loop = Task {
            await RetryingLoop.run(cap: .seconds(86_400)) { _ throws(Trouble) in
                throw Trouble()
            } failed: { _ in
                .pause
            }
        }
        loop.cancel()
        await loop.value
    }

    @Test func `work is repeated until it succeeds, with longer pauses, or until a failure is final`() async throws {
        var (tries, pauses) = (0, [Duration]())
        let value = try await RetryingLoop.value(
            cap: .seconds(1), pause: { (pause) throws(Trouble) in pauses.append(pause) },
            of: { () throws(Trouble) in
                tries += 1
                if tries < 9 { throw Trouble() }
                return tries
            }, failed: { _ throws(Trouble) in tries != 4 })
        #expect(value == 9 && pauses.count == 7)
        #expect(pauses[0] <= .milliseconds(50) && pauses[6] >= .milliseconds(500) && pauses[6] <= .seconds(1))
        await #expect(throws: Trouble.self) {
            try await RetryingLoop.value(
                pause: { _ throws(Trouble) in }, of: { () throws(Trouble) -> Int in throw Trouble() },
                failed: { error throws(Trouble) in throw error })
        }
    }
}
