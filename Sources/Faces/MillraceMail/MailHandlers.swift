import Jobs
package import Mail
package import Workers

/// The mail room's jobs, as a worker runs them.
package enum MailHandlers {
    /// One for each kind. Company is waited for a moment: a provider takes a hundred in one request as fast as one, and those that
    /// take the places of a request's messages are claimed in parts. A call that holds all the places it may have waits for nobody.
    package static func of(_ service: MailService, slots: Int) -> [Handler] {
        let size = min(100, bounds(slots: slots)["mail"] ?? slots)
        return MailService.kinds.map { kind in
            Handler(plainChunks: size, kind: kind, queue: "mail", waiting: .milliseconds(100)) { items in
                let jobs = items.map { args, context in
                    MailJob(
                        job: context.id, kind: kind, args: args, session: context.session,
                        isLast: context.attempt >= context.maxAttempts)
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

    /// Mail that nobody waits for leaves some of a worker's slots to others; it has places for whole requests, if there are many.
    package static func bounds(slots: Int) -> [String: Int] {
        guard slots > 1 else { return [:] }
        let most = slots - max(1, slots / 10)
        return ["mail": most > 100 ? most / 100 * 100 : most]
    }
}
