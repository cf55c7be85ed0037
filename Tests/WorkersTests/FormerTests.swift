import TestSupport
import Testing

@testable import Workers

@Suite struct FormerTests {
    @Test func `a full round is a chunk at once, in the order of joining`() {
        var former = ChunkAssembler(size: 3)
        let tickets = (0..<4).map { _ in former.ticket() }
        #expect(holds(former.join(tickets[0]) == .first(round: 0)))
        #expect(holds(former.join(tickets[2]) == .joined))
        #expect(
            holds(
                former.join(tickets[1])
                    == .full(ChunkAssembler.Chunk(id: 0, tickets: [tickets[0], tickets[2], tickets[1]]))))
        #expect(holds(former.join(tickets[3]) == .first(round: 1)))
        #expect(holds(former.close(round: 0) == nil), "its time is up, but it has gone already")
        #expect(holds(former.close(round: 1) == ChunkAssembler.Chunk(id: 1, tickets: [tickets[3]])))
    }

    @Test func `a size of one, or a senseless one, makes chunks of one`() {
        for size in [1, 0, -5] {
            var former = ChunkAssembler(size: size)
            let ticket = former.ticket()
            #expect(holds(former.join(ticket) == .full(ChunkAssembler.Chunk(id: 0, tickets: [ticket]))))
        }
    }

    @Test func `who is cancelled before the chunk begins is not in it`() {
        var former = ChunkAssembler(size: 3)
        let tickets = (0..<3).map { _ in former.ticket() }
        for ticket in tickets[..<2] { _ = former.join(ticket) }
        #expect(holds(former.cancel(tickets[0]) == .left))
        #expect(holds(former.cancel(tickets[2]) == .absent))
        #expect(holds(former.join(tickets[2]) == .refused), "it was cancelled on its way in")
        #expect(holds(former.close(round: 0)?.tickets == [tickets[1]]))
    }

    @Test func `when all have left a round, the next to come gets its whole time`() {
        var former = ChunkAssembler(size: 3)
        let first = former.ticket()
        let second = former.ticket()
        _ = former.join(first)
        _ = former.cancel(first)
        #expect(holds(former.join(second) == .first(round: 1)))
        #expect(holds(former.close(round: 0) == nil))
    }

    @Test func `a chunk is unwanted only when each of its jobs is cancelled`() {
        var former = ChunkAssembler(size: 2)
        let tickets = [former.ticket(), former.ticket()]
        for ticket in tickets { _ = former.join(ticket) }
        #expect(holds(former.cancel(tickets[1]) == .othersRemain))
        #expect(former.isWanted(0))
        #expect(holds(former.cancel(tickets[0]) == .chunkAlone(0)))
        #expect(!former.isWanted(0))
        former.ended(0)
        #expect(holds(former.cancel(tickets[0]) == .absent))
    }

    @Test func `a drain gives back who has not begun, and lets nobody in`() {
        var former = ChunkAssembler(size: 2)
        let tickets = (0..<4).map { _ in former.ticket() }
        for ticket in tickets[..<3] { _ = former.join(ticket) }
        #expect(holds(former.drain() == [tickets[2]]))
        #expect(former.isWanted(0), "what runs goes on")
        #expect(holds(former.join(tickets[3]) == .refused))
        #expect(holds(former.close(round: 1) == nil))
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `whatever happens, each run is in one chunk, or left, or given back`(seed: UInt64) {
        var random = SeededRandom(seed)
        var former = ChunkAssembler(size: 4)
        var joined: Set<Int> = []
        var settled: [Int] = []
        var round = 0
        func took(_ chunk: ChunkAssembler.Chunk?) {
            settled += chunk?.tickets ?? []
            #expect((chunk?.tickets.count ?? 1) <= 4)
        }
        for _ in 0..<300 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1, 2:
                let ticket = former.ticket()
                joined.insert(ticket)
                switch former.join(ticket) {
                case .first(let opened): round = opened
                case .joined: break
                case .full(let chunk): took(chunk)
                case .refused: Issue.record("nobody was cancelled, and nothing drains")
                }
            case 3: took(former.close(round: round))
            default:
                if let ticket = joined.randomElement(using: &random) {
                    if former.cancel(ticket) == .left { settled.append(ticket) }
                    former.forget(ticket)
                }
            }
        }
        settled += former.drain()
        #expect(settled.count == Set(settled).count)
        #expect(Set(settled) == joined)
    }
}
