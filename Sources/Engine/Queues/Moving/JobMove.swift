package import Postgres

/// Takes the waiting jobs of a tenant from one database to another, each exactly once. What rooms keep stays, and the jobs for it too.
///
/// A job is first in the queue of the source, then in its books, after the decision in the books of the target, and at last in its queue. Each
/// change is one transaction in one database. A move that was cut off anywhere goes on with the next call, or is undone until it is decided.
package struct JobMove: Sendable {
    /// After which step something may be cut off.
    package enum Step: String, Sendable, CaseIterable {
        case departed, expected, taken, staged, noted, decided, released, arrived, purged, forgotten, ended
        case undoing, refused, putBack
    }

    package struct Failure: Error, Sendable {
        package var sentence: String
        package var hint: String?
    }

    package struct Report: Sendable, Equatable {
        package var state: MoveBooks.State
        /// Those that are on their way, or have come there; of an undone move, those that are back.
        package var jobs: Int
        /// Waiting jobs that stay where they are.
        package var left: Int

        package init(state: MoveBooks.State, jobs: Int, left: Int) {
            (self.state, self.jobs, self.left) = (state, jobs, left)
        }
    }

    package let tenant: String
    package let source: String
    package let target: String
    package let from: Connection
    package let to: Connection
    package var batch = 500
    /// Called behind each step; for tests, which cut it off there.
    package var behind: @Sendable (Step) throws -> Void = { _ in }

    package init(tenant: String, source: String, target: String, from: Connection, to: Connection) {
        (self.tenant, self.source, self.target, self.from, self.to) = (tenant, source, target, from, to)
    }

    /// - Parameter holds: The jobs are taken and written down in the other database, and it is not decided yet.
    package func run(holds: Bool = false) async throws -> Report {
        try await MoveBooks.open(on: from)
        try await MoveBooks.open(on: to)
        try await MoveBooks.depart(tenant: tenant, target: target, on: from)
        try behind(.departed)
        let move = try await current()
        if try await isSameDatabase(move) {
            _ = try await MoveBooks.beginUndo(move, on: from)
            try await MoveBooks.end(move, as: .undone, on: from)
            throw Failure(
                sentence: "\(source) and \(target) are one database", hint: "give each database its own address")
        }
        switch move.state {
        case .taking:
            repeat {
                try await takeAll(move)
                if holds { return try await report(.taking) }
            } while try await !decide(move)
            try behind(.decided)
        case .finished: break
        case .undoing, .undone, .done:
            throw Failure(
                sentence: "the move of \(tenant) is being undone", hint: "let that end first: millrace move undo")
        }
        return try await settle(move)
    }

    /// Possible until it is decided. The target need not be there: nothing that it has written down can become a job any more.
    package func undo(reachesTarget: Bool = true) async throws -> Report {
        let move = try await current()
        guard try await MoveBooks.beginUndo(move, on: from) else {
            throw Failure(
                sentence: "the move of \(tenant) to \(move.target) is decided, and its jobs are there or on their way",
                hint: "let it end, and move them back: millrace move tenant \(tenant) --from \(target) --to \(source)")
        }
        try behind(.undoing)
        if reachesTarget {
            try await MoveBooks.open(on: to)
            try await MoveBooks.refuse(move, from: source, on: to)
        }
        try behind(.refused)
        var back = 0
        while case let some = try await MoveBooks.putBack(move, most: batch, on: from), some > 0 {
            back += some
            try behind(.putBack)
        }
        try await MoveBooks.end(move, as: .undone, on: from)
        try behind(.ended)
        return Report(state: .undone, jobs: back, left: 0)
    }

    private func current() async throws -> MoveBooks.Departure {
        guard try await MoveBooks.exist(on: from),
            let move = try await MoveBooks.departures(of: tenant, onlyOpen: true, on: from).first
        else { throw Failure(sentence: "\(tenant) is not on its way from \(source)", hint: "see millrace move list") }
        guard move.target == target else {
            throw Failure(
                sentence: "\(tenant) is on its way from \(source) to \(move.target)",
                hint: "let that move end, or undo it")
        }
        return move
    }

    /// The move that was noted in one is in the books of the other.
    private func isSameDatabase(_ move: MoveBooks.Departure) async throws -> Bool {
        try await MoveBooks.departures(of: tenant, onlyOpen: true, on: to).contains { $0.id == move.id }
    }

    /// False: an earlier call, whose process is gone, has taken more meanwhile.
    private func decide(_ move: MoveBooks.Departure) async throws -> Bool {
        if try await MoveBooks.finish(move, on: from) { return true }
        switch try await current().state {
        case .taking: return false
        case .finished: return true
        case .undoing, .undone, .done:
            throw Failure(sentence: "the move was undone meanwhile", hint: "see millrace move list")
        }
    }

    private func takeAll(_ move: MoveBooks.Departure) async throws {
        guard try await MoveBooks.expect(move, from: source, on: to) else {
            throw Failure(sentence: "\(target) refuses this move: it was undone there", hint: "millrace move undo")
        }
        try behind(.expected)
        while true {
            // What an earlier call has taken and not brought comes first.
            while case let (jobs, contents) = try await MoveBooks.unstaged(move, most: batch, on: from), !jobs.isEmpty {
                guard try await MoveBooks.stage(contents, of: move, on: to) else {
                    throw Failure(sentence: "\(target) takes nothing more of this move", hint: "see millrace move list")
                }
                try behind(.staged)
                try await MoveBooks.staged(jobs, of: move, on: from)
                try behind(.noted)
            }
            guard try await MoveBooks.take(move, most: batch, on: from) > 0 else { return }
            try behind(.taken)
        }
    }

    /// Behind the decision.
    private func settle(_ move: MoveBooks.Departure) async throws -> Report {
        while try await MoveBooks.release(move, most: batch, on: to) > 0 { try behind(.released) }
        try await MoveBooks.arrive(move, on: to)
        try behind(.arrived)
        // Nothing is deleted that is not there: the target may have been set back to an earlier time.
        while case let jobs = try await MoveBooks.next(move, most: batch, on: from), !jobs.isEmpty {
            guard try await MoveBooks.has(jobs, of: move, on: to) else {
                // Another call has purged them, and the target has forgotten them.
                if try await MoveBooks.next(move, most: batch, on: from) != jobs { continue }
                throw Failure(
                    sentence: "\(target) lacks jobs of \(tenant) that it had; nothing of them was deleted in \(source)",
                    hint: "if it was restored from a backup, see deploy/guides/databases.md")
            }
            _ = try await MoveBooks.purge(jobs, of: move, on: from)
            try behind(.purged)
        }
        try await MoveBooks.forget(move, on: to)
        try behind(.forgotten)
        let report = try await report(.done)
        try await MoveBooks.end(move, as: .done, on: from)
        try behind(.ended)
        return report
    }

    private func report(_ state: MoveBooks.State) async throws -> Report {
        let left = try await MoveBooks.waiting(tenant, on: from)
        let now = try await MoveBooks.departures(of: tenant, onlyOpen: true, on: from).first
        return Report(state: state, jobs: (now?.taken ?? 0) + (now?.moved ?? 0), left: left)
    }
}
