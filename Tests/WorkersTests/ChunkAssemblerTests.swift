import TestSupport
import Testing

@testable import Workers

@Suite struct ChunkAssemblerTests {
    @Test func `a full round is a chunk at once, in the order of joining`() {
        var assembler = ChunkAssembler(size: 3)
        let tickets = (0..<4).map { _ in assembler.ticket() }
        #expect(holds(assembler.join(tickets[0]) == .first(round: 0)))
        #expect(holds(assembler.join(tickets[2]) == .joined))
        #expect(
            holds(
                assembler.join(tickets[1])
                    == .full(ChunkAssembler.Chunk(id: 0, tickets: [tickets[0], tickets[2], tickets[1]]))))
        #expect(holds(assembler.join(tickets[3]) == .first(round: 1)))
        #expect(holds(assembler.close(round: 0) == nil), "its time is up, but it has gone already")
        #expect(holds(assembler.close(round: 1) == ChunkAssembler.Chunk(id: 1, tickets: [tickets[3]])))
    }

    @Test func `a size of one, or a senseless one, makes chunks of one`() {
        for size in [1, 0, -5] {
            var assembler = ChunkAssembler(size: size)
            let ticket = assembler.ticket()
            #expect(holds(assembler.join(ticket) == .full(ChunkAssembler.Chunk(id: 0, tickets: [ticket]))))
        }
    }

    @Test func `who is cancelled before the chunk begins is not in it`() {
        var assembler = ChunkAssembler(size: 3)
        let tickets = (0..<3).map { _ in assembler.ticket() }
        for ticket in tickets[..<2] { _ = assembler.join(ticket) }
        #expect(holds(assembler.cancel(tickets[0]) == .left))
        #expect(holds(assembler.cancel(tickets[2]) == .absent))
        #expect(holds(assembler.join(tickets[2]) == .refused), "it was cancelled on its way in")
        #expect(holds(assembler.close(round: 0)?.tickets == [tickets[1]]))
    }

    @Test func `when all have left a round, the next to come gets its whole time`() {
        var assembler = ChunkAssembler(size: 3)
        let first = assembler.ticket()
        let second = assembler.ticket()
        _ = assembler.join(first)
        _ = assembler.cancel(first)
        #expect(holds(assembler.join(second) == .first(round: 1)))
        #expect(holds(assembler.close(round: 0) == nil))
    }

    @Test func `a chunk is unwanted only when each of its jobs is cancelled`() {
        var assembler = ChunkAssembler(size: 2)
        let tickets = [assembler.ticket(), assembler.ticket()]
        for ticket in tickets { _ = assembler.join(ticket) }
        #expect(holds(assembler.cancel(tickets[1]) == .othersRemain))
        #expect(assembler.isWanted(0))
        #expect(holds(assembler.cancel(tickets[0]) == .chunkAlone(0)))
        #expect(!assembler.isWanted(0))
        assembler.ended(0)
        #expect(holds(assembler.cancel(tickets[0]) == .absent))
    }

    @Test func `a drain gives back who has not begun, and lets nobody in`() {
        var assembler = ChunkAssembler(size: 2)
        let tickets = (0..<4).map { _ in assembler.ticket() }
        for ticket in tickets[..<3] { _ = assembler.join(ticket) }
        #expect(holds(assembler.drain() == [tickets[2]]))
        #expect(assembler.isWanted(0), "what runs goes on")
        #expect(holds(assembler.join(tickets[3]) == .refused))
        #expect(holds(assembler.close(round: 1) == nil))
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `whatever happens, each run is in one chunk, or left, or given back`(seed: UInt64) {
        var random = SeededRandom(seed)
        var assembler = ChunkAssembler(size: 4)
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
                let ticket = assembler.ticket()
                joined.insert(ticket)
                switch assembler.join(ticket) {
                case .first(let opened): round = opened
                case .joined: break
                case .full(let chunk): took(chunk)
                case .refused: Issue.record("nobody was cancelled, and nothing drains")
                }
            case 3: took(assembler.close(round: round))
            default:
                if let ticket = joined.randomElement(using: &random) {
                    if assembler.cancel(ticket) == .left { settled.append(ticket) }
                    assembler.forget(ticket)
                }
            }
        }
        settled += assembler.drain()
        #expect(settled.count == Set(settled).count)
        #expect(Set(settled) == joined)
    }
}
