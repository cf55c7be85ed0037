package import Encryption
import FoundationEssentials
package import MillraceQueues

/// A job as it is judged, and as the rehearsed build is told of it.
package struct RehearsalCase: Sendable {
    package let job: RehearsedJob
    package var request: RehearsalRequest

    /// As the database puts it.
    private struct Wait: Decodable {
        var step: String?
        var what: String
        var name: String?
        var key: String?
        var children: [RehearsalAsked.Child]?
    }

    private struct Step: Decodable {
        var name: String
        var value: String
        var asked: Wait?
        var children: [RehearsalAsked.Child]?
    }

    /// Throws when its arguments are encrypted with a key that is not here.
    package init(_ row: RehearsalRow, keys: Keyring) throws {
        let decoder = JSONDecoder()
        let steps = try decoder.decode([Step].self, from: Data(row.steps))
        let awaits = try row.awaits.map { try decoder.decode(Wait.self, from: Data($0)) }
        let place: RehearsedJob.Place =
            if let awaits, let step = awaits.step {
                .waits(Self.asked(step, awaits, awaits.children, keys))
            } else if row.outcome != nil {
                .ended
            } else if row.attempts == nil && steps.isEmpty {
                .fresh
            } else {
                .underWay
            }
        job = RehearsedJob(
            id: row.id, kind: row.kind, place: place,
            steps: steps.map { step in
                RehearsedJob.Step(
                    name: step.name, asked: step.asked.map { Self.asked(step.name, $0, step.children, keys) })
            })
        var request = RehearsalRequest(
            id: row.id, kind: row.kind,
            args: String(decoding: try keys.open(row.args, kind: row.kind), as: UTF8.self))
        request.queue = row.queue
        request.attempt = (row.attempts ?? 0) + 1
        request.crashes = row.crashes
        request.enqueuedAt = row.enqueuedAt.timeIntervalSince1970
        request.tenant = row.tenant
        request.tags = row.tags
        request.metadata = row.metadata.map { String(decoding: $0, as: UTF8.self) }
        request.steps = steps.map { RehearsalRequest.Step(name: $0.name, value: $0.value) }
        request.awaited = awaits?.step
        if let earlier = row.earlier {
            request.earlier = try decoder.decode([RehearsalRequest.Predecessor].self, from: Data(earlier))
        }
        self.request = request
    }

    private static func asked(
        _ step: String, _ wait: Wait, _ children: [RehearsalAsked.Child]?, _ keys: Keyring
    ) -> RehearsalAsked {
        // What cannot be opened is not compared.
        let opened = children.flatMap { children in
            try? children.map { child in
                RehearsalAsked.Child(
                    kind: child.kind,
                    args: String(decoding: try keys.open(Array(child.args.utf8), kind: child.kind), as: UTF8.self))
            }
        }
        return RehearsalAsked(step: step, what: wait.what, name: wait.name, key: wait.key, children: opened)
    }
}
