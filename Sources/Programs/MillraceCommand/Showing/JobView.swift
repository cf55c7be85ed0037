import FoundationEssentials
import MillraceJobs
import MillraceQueues

/// A job for machines and for people.
extension JobDetail {
    var json: JSONValue { .object(members) }

    var members: [JSONValue.Member] {
        let members: JSONValue = [
            "id": .int(Int(id)), "kind": .string(kind), "queue": .string(queue), "state": .string(state.rawValue),
            "priority": .int(priority), "args": JSONValue(raw: args), "run_at": JSONValue(runAt),
            "attempt": .int(attempt), "max_attempts": JSONValue(maxAttempts), "crashes": .int(crashes),
            "unique_key": JSONValue(uniqueKey), "limit_key": JSONValue(limitKey), "tenant": JSONValue(tenant),
            "tags": JSONValue(tags), "metadata": JSONValue(raw: metadata), "enqueued_at": JSONValue(enqueuedAt),
            "started_at": JSONValue(startedAt), "finished_at": JSONValue(finishedAt), "worker": JSONValue(worker),
            "progress": JSONValue(raw: progress), "errors": JSONValue(raw: errors),
            "waits_for": .array(waitsFor.map { .int(Int($0)) }), "result": JSONValue(raw: result),
            "limited_by": JSONValue(limitedBy),
        ]
        guard case .object(let list) = members else { return [] }
        return list
    }

    /// The failures, oldest first.
    var failures: [Failed] {
        guard case .array(let items)? = try? JSONValue.read(errors) else { return [] }
        return items.map { item in
            Failed(
                attempt: item["attempt"]?.integer ?? 0, at: item["at"]?.text ?? "",
                outcome: item["outcome"]?.text ?? "",
                error: item["error"]?.text ?? "")
        }
    }

    /// The last error as a list shows it: one that a later run has overcome is not said as if it counted now.
    var lastError: String? {
        guard let last = failures.last else { return nil }
        switch state {
        case .succeeded, .cancelled: return "earlier error (attempt \(last.attempt)): \(last.error)"
        case .ready, .scheduled, .blocked, .running, .dead: return last.error
        }
    }

    /// One run that left an error.
    struct Failed {
        let attempt: Int
        let at: String
        let outcome: String
        let error: String
    }

    /// `job 7`.
    var awaited: String? {
        waitsFor.isEmpty ? nil : waitsFor.map { "job \($0)" }.joined(separator: ", ")
    }

    var style: Style {
        switch state {
        case .ready, .blocked: .plain
        case .scheduled: .dim
        case .running: .cyan
        case .succeeded: .green
        case .cancelled: .yellow
        case .dead: .red
        }
    }

    /// The last line of a wait.
    var ending: String {
        var text = "job \(id) \(state == .dead ? "is dead" : state.rawValue)"
        if let startedAt, let finishedAt {
            text += " after \(Humane.duration(.seconds(max(0, finishedAt.timeIntervalSince(startedAt)))))"
        }
        if attempt > 0 { text += ", attempt \(attempt)" }
        if state == .dead, let last = failures.last { text += ": \(DisplayWidth.harmless(last.error))" }
        return text
    }
}

extension JSONValue {
    init(raw: [UInt8]?) {
        self = raw.map { .raw(String(decoding: $0, as: UTF8.self)) } ?? .null
    }
}

extension Humane {
    /// `3m 12s ago`, by the clock of this machine.
    static func relative(_ date: Date) -> String {
        relative(.seconds(date.timeIntervalSinceNow))
    }
}
