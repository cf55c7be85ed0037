/// Which runs of a kind go together in one call, and when. Pure; `ChunkRunner` puts a lock around it.
///
/// Runs join the round that is open. It closes when it is full, or when its time is up, and is a chunk from then on.
package struct ChunkAssembler: Sendable {
    package struct Chunk: Sendable, Equatable {
        package let id: Int
        package let tickets: [Int]
    }

    package enum Welcome: Sendable, Equatable {
        /// It has opened a round, which is to be closed when its time is up.
        case first(round: Int)
        case joined
        /// It was the last that fitted.
        case full(Chunk)
        /// It was cancelled on its way in, or the worker stops.
        case refused
    }

    package enum Leave: Sendable, Equatable {
        /// It had not begun: it is out of its round.
        case left
        /// Its chunk goes on for the others.
        case othersRemain
        /// It was the last of its chunk that anybody wanted.
        case chunkAlone(Int)
        /// It is not there: not yet, or no more.
        case absent
    }

    private let size: Int
    private var round = 0
    private var open: [Int] = []
    private var lastTicket = 0
    private var stopped = false
    /// Cancelled before they joined.
    private var early: Set<Int> = []
    /// Of each chunk under way, those that nobody has cancelled.
    private var wanted: [Int: Set<Int>] = [:]

    package init(size: Int) {
        self.size = max(1, size)
    }

    package mutating func ticket() -> Int {
        lastTicket += 1
        return lastTicket
    }

    package mutating func join(_ ticket: Int) -> Welcome {
        guard early.remove(ticket) == nil, !stopped else { return .refused }
        open.append(ticket)
        if open.count == size { return .full(form()) }
        return open.count == 1 ? .first(round: round) : .joined
    }

    /// The time of a round is up. nil: it was full before, or all have left it.
    package mutating func close(round closed: Int) -> Chunk? {
        guard closed == round, !open.isEmpty else { return nil }
        return form()
    }

    private mutating func form() -> Chunk {
        let chunk = Chunk(id: round, tickets: open)
        wanted[round] = Set(open)
        open = []
        round += 1
        return chunk
    }

    package mutating func cancel(_ ticket: Int) -> Leave {
        if let index = open.firstIndex(of: ticket) {
            open.remove(at: index)
            if open.isEmpty { round += 1 }  // the next run gets its own whole time
            return .left
        }
        for (id, tickets) in wanted where tickets.contains(ticket) {
            wanted[id]?.remove(ticket)
            return tickets.count == 1 ? .chunkAlone(id) : .othersRemain
        }
        early.insert(ticket)
        return .absent
    }

    /// True while somebody still wants what this chunk does.
    package func isWanted(_ chunk: Int) -> Bool {
        wanted[chunk]?.isEmpty == false
    }

    package mutating func ended(_ chunk: Int) {
        wanted[chunk] = nil
    }

    /// A run is over; nothing is to be remembered of it.
    package mutating func forget(_ ticket: Int) {
        early.remove(ticket)
    }

    /// The worker stops: those that have not begun go back, and nobody joins any more.
    package mutating func drain() -> [Int] {
        stopped = true
        defer { open = [] }
        return open
    }
}
