import MillraceJobs
package import Workers

/// The mail room's jobs, as a worker runs them.
package enum MailHandlers {
    /// One handler for each kind. A call waits a moment for more jobs, because a provider takes a hundred messages in one request as fast
    /// as one, and jobs are claimed in parts. A call with all the slots that it may have does not wait.
    package static func of(_ service: MailService, slots: Int) -> [Handler] {
        let size = min(100, bounds(slots: slots)["mail"] ?? slots)
        return MailService.kinds.map { kind in
            Handler(plainChunks: size, kind: kind, queue: "mail", waiting: .milliseconds(100)) { items in
                let jobs = items.map { args, context in
                    MailJob(
                        job: context.id, kind: kind, args: args, session: context.session,
                        isLast: context.attempt >= context.maxAttempts, trace: context.trace)
                }
                return try await service.run(jobs).map { ending in
                    switch ending {
                    case .done: .done
                    case .later(let pause): .snooze(for: pause)
                    case .retry(let reason): .retry(reason: reason)
                    case .dead(let reason): .discard(reason)
                    }
                }
            }
        }
    }

    /// Non-urgent mail leaves some of a worker's slots to other jobs; if there are many slots, it has enough for whole requests.
    package static func bounds(slots: Int) -> [String: Int] {
        guard slots > 1 else { return [:] }
        let most = slots - max(1, slots / 10)
        return ["mail": most > 100 ? most / 100 * 100 : most]
    }
}
