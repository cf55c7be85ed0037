import Encryption
import MillraceQueues
import Postgres

/// Encrypts, a batch at a time, with the first key what was encrypted with another one.
struct Rotation {
    let keys: Keyring
    let invocation: Invocation

    /// The results of one pass.
    struct Pass {
        var changed = 0
        /// Held by an open transaction, or changed meanwhile: another pass may find them free.
        var passedOver = 0
        /// Why they could not be opened, and how many for each reason.
        var unreadable: [String: Int] = [:]
    }

    private static let passes = 3
    private static let patience = Duration.seconds(60)

    private var console: Console { invocation.console }

    func run(on connection: Connection) async throws -> ExitCode {
        guard let first = keys.keys.first else { return .done }
        if invocation.parsed.isOn("dry-run") { return try await tell(first, on: connection) }
        var total = 0
        var last = Pass()
        let region = console.live()
        let shows = console.errors.isTerminal && console.verbosity > .quiet
        for _ in 0..<Self.passes {
            last = try await pass(first, on: connection) { changed in
                if shows { region.update(["\(Humane.count(total + changed, "job")) encrypted with key \(first.id)"]) }
            }
            total += last.changed
            if last.passedOver == 0 { break }
        }
        if shows { region.update([]) }
        let left = last.passedOver + last.unreadable.values.reduce(0, +)
        console.show(["key": .string(first.id), "changed": .int(total), "left": .int(left)]) {
            console.print("\(Humane.count(total, "job")) encrypted with key \(first.id)")
        }
        if last.passedOver > 0 {
            console.failure("\(Humane.count(last.passedOver, "job")) were in use by open transactions: run this again")
        }
        for (reason, count) in last.unreadable.sorted(by: { $0.key < $1.key }) {
            console.failure("\(Humane.count(count, "job")) could not be opened: \(reason)")
        }
        return left == 0 ? .done : .failed
    }

    private func tell(_ first: Key, on connection: Connection) async throws -> ExitCode {
        let others = try await Queue.sealedKeys(cap: nil, on: connection, deadline: .seconds(600)).filter {
            $0.id != first.id
        }
        let count = others.reduce(0) { $0 + $1.living + $1.ended }
        console.show(["would": "encrypt", "key": .string(first.id), "jobs": .int(count)]) {
            console.print("would encrypt \(Humane.count(count, "job")) with key \(first.id)")
        }
        return .done
    }

    private func pass(
        _ first: Key, on connection: Connection, onProgress: (Int) -> Void
    ) async throws -> Pass {
        var pass = Pass()
        var place = (key: "", id: Int64(0))
        let size = invocation.parsed.integer("batch") ?? 200
        while true {
            try Task.checkCancellation()
            let page = try await Queue.sealedPage(
                notBy: first.id, afterKey: place.key, afterID: place.id, limit: size, on: connection,
                deadline: Self.patience)
            guard let last = page.last, let lastKey = try SealedEnvelope(last.args)?.key else { return pass }
            place = (lastKey, last.id)
            var changes: [(old: SealedJob, new: [UInt8])] = []
            for job in page {
                do throws(SealError) {
                    changes.append((job, try keys.seal(try keys.open(job.args, kind: job.kind), kind: job.kind)))
                } catch {
                    pass.unreadable[error.description, default: 0] += 1
                }
            }
            if !changes.isEmpty {
                let done = try await Queue.reseal(changes, on: connection, deadline: Self.patience)
                pass.changed += done.count
                pass.passedOver += changes.count - done.count
                onProgress(pass.changed)
            }
        }
    }
}
