import TestSupport
import Testing

@testable import Console

/// A form for each action that names things which are there, so that only the role can be the reason of a refusal.
enum ActionSamples {
    static func all(_ world: ConsoleWorld) async throws -> [(action: ConsoleAction, form: [String: String])] {
        let dead = try await world.job("dead")
        let waiting = try #require(
            try await world.connection.value("select min(id) from millrace.jobs where state = 'scheduled'"))
        let alarm = try await world.alarm()
        let signalled = try await world.signalled()
        let open = try #require(try await world.connection.value("select max(id) from millrace.operation"))
        let forms: [String: [String: String]] = [
            "job.retry": ["id": dead], "job.cancel": ["id": waiting], "job.delete": ["id": dead, "sure": "yes"],
            "job.fork": ["id": dead], "job.edit": ["id": dead, "args": "{}"],
            "job.signal": ["id": signalled, "name": "paid", "payload": "7"],
            "job.reschedule": ["id": waiting, "run_at": "2031-05-06T07:08"],
            "job.priority": ["id": waiting, "priority": "1"],
            "approval.answer": ["id": Seed.approval, "approved": "true"], "queue.pause": ["queue": "reports"],
            "queue.resume": ["queue": "slow"], "queue.limit": ["queue": "reports", "concurrency": "3"],
            "schedule.pause": ["name": "often"], "schedule.resume": ["name": "weekly"],
            "schedule.run": ["name": "often"], "schedule.remove": ["name": "often", "sure": "yes"],
            "schedule.save": [
                "name": "made", "kind": "image.resize", "expression": "every 15m", "zone": "UTC", "args": "{}",
            ],
            "search.save": ["name": "mine", "filter": #"{"state": "dead"}"#], "search.remove": ["name": "night"],
            "provider.force": ["provider": "resend", "state": "auto", "reason": "x", "hold": "1 hour"],
            "mail.resolve": ["id": Seed.mail, "verdict": "accepted"], "mail.cancel": ["id": Seed.queuedMail],
            "document.retry": ["id": Seed.document], "alarm.resolve": ["id": alarm, "reason": "x", "sure": "yes"],
            "webhook.enable": ["id": Seed.webhook],
            "operation.start": ["action": "cancel", "filter": #"{"state": "ready"}"#, "key": "k"],
            "operation.pause": ["id": open], "operation.resume": ["id": open], "operation.stop": ["id": open],
            "operation.undo": ["id": open],
        ]
        return try ConsoleAction.all.map { action in
            (action, try #require(forms[action.name], "no sample for \(action.name)"))
        }
    }
}
