import FoundationEssentials
package import JSON
package import MillraceQueues

extension RoomRow {
    /// Something waits, and no worker does it; workers of earlier versions might.
    package var isUnserved: Bool { (waiting ?? 0) > 0 && servers == 0 && unsure == 0 }

    /// The room consists of jobs of these kinds; without any worker one finding covers all jobs.
    package var isKinds: Bool { ["mail", "documents", "quests"].contains(name) }

    package func owns(kind: String) -> Bool {
        switch name {
        case "mail": kind.hasPrefix("mail.")
        case "documents": kind.hasPrefix("document.")
        case "quests": kind == "quests.rollover"
        default: false
        }
    }

    /// Messages are written to files because no mail service is configured.
    package var becomesFiles: Bool { name == "mail" && servers > 0 && how.contains(RoomRow.filesByDefault) }

    fileprivate var sentence: String {
        let waiting = waiting ?? 0
        let (verb, s) = waiting == 1 ? ("waits", "") : ("wait", "s")
        let count = QueueDepth.counted(waiting, cap: 10_000)
        switch name {
        case "mail": return "\(count) mail\(s) \(verb) and no worker sends mail"
        case "documents": return "\(count) step\(s) of documents \(verb) and no worker reads them"
        case "quests": return "families are due to be rolled over midnight and no worker does it"
        case "notices": return "\(count) notice\(s) \(verb) and no worker tells people"
        case "webhooks": return "\(count) event\(s) \(verb) for webhooks and no worker calls them"
        default: return "\(count) \(verb) in \(name) and no worker serves it"
        }
    }
}

extension TroubleRow {
    package var sentence: String {
        let what = kind.map { "\($0) in \(queue)" } ?? queue
        let share = "\(Humane.count(failed)) of \(Humane.count(runs)) runs failed"
        let span = span == 300 ? "in the last 5 minutes" : "in the last hour"
        let said = error.map { ": \($0)" } ?? ""
        return switch trouble {
        case .build: "\(what): \(share) on the newest build, \(build ?? "?"), and earlier builds did not fail\(said)"
        case .failing: "\(what): \(share) \(span)\(said)"
        case .retrying:
            "\(what): \(QueueDepth.counted(retrying, cap: retryingCap)) jobs wait for another attempt, more than succeeded in the last hour\(said)"
        }
    }

    package var alarm: Alarm {
        switch trouble {
        case .build: .failingBuild
        case .failing: .failingRuns
        case .retrying: .retries
        }
    }

    package var json: JSONValue {
        [
            "trouble": .string(trouble.rawValue), "queue": .string(queue), "kind": JSONValue(kind),
            "runs": .int(runs), "failed": .int(failed), "span_seconds": .int(span), "retrying": .int(retrying),
            "build": JSONValue(build), "error": JSONValue(error), "sentence": .string(sentence),
        ]
    }
}

extension ConnectionsLeft {
    /// What `status` says where there are hardly any.
    package var sentence: String {
        let left = Humane.count(left, "connection")
        let need = "and a worker needs \(StatusReport.connectionsOfWorker) to start"
        return switch limit {
        case .server: "the database has \(left) left, \(need)"
        case .database: "the database \(name ?? "?") has \(left) left of its own limit, \(need)"
        case .role: "the role \(name ?? "?") has \(left) left of its own limit, \(need)"
        }
    }
}

extension StatusReport {
    /// Jobs that end their workers, and cancelled ones that hold their slots.
    package var runFindings: [Finding] {
        (runTroubles.value ?? []).compactMap { run in
            let what = "job \(run.job) (\(run.kind) in \(run.queue))"
            switch run.trouble {
            case .crashes:
                let crashes = run.crashes ?? 1
                let many =
                    crashes == 1 ? "a worker ended while it held it" : "\(crashes) workers ended while they held it"
                return Finding(
                    alarm: .endsWorkers, severity: .degraded,
                    sentence: "\(what): \(many); correct its handler, or take it out: millrace jobs cancel \(run.job)",
                    command: "millrace jobs show \(run.job)", about: .job(run.job))
            case .cancelled:
                let span = Humane.duration(.seconds(run.seconds ?? 0))
                return Finding(
                    alarm: .cancelIgnored, severity: .degraded,
                    sentence:
                        "\(what) was cancelled \(span) ago, and its handler still holds its slot on \(run.worker ?? "?") of \(run.host ?? "?")",
                    command: run.pid.map { "kill \($0)" }, about: .job(run.job), age: run.seconds)
            case .stuck: return nil  // the worker's own finding names it
            }
        }
    }

    /// Handlers that ignore their cancellation end only with their process. A worker does not say which they are: they are among its longest runs.
    package func longestRuns(of worker: WorkerRow) -> String {
        let runs = (runTroubles.value ?? []).filter { $0.trouble == .stuck && $0.worker == worker.name }
        let names = runs.map { "job \($0.job) (\($0.kind)), for \(Humane.duration(.seconds($0.seconds ?? 0)))" }
        return (names.isEmpty ? "" : "; its longest runs: " + names.joined(separator: ", "))
            + "; restart it on \(worker.host)"
    }

    /// Troubles although workers live: kinds that fail, queues that are paused, rooms that nobody serves.
    package var troubleFindings: [Finding] {
        var found: [Finding] = []
        func say(
            _ alarm: Alarm, _ sentence: String, command: String? = nil, about subject: FindingSubject? = nil,
            age: Double? = nil
        ) {
            found.append(
                Finding(
                    alarm: alarm, severity: .degraded, sentence: sentence, command: command, about: subject, age: age))
        }
        for trouble in troubles.value ?? [] {
            say(
                trouble.alarm, trouble.sentence, command: command(for: trouble),
                about: .runs(queue: trouble.queue, kind: trouble.kind))
        }
        // Silence would be taken for health.
        if let reason = troubles.reason { say(.unknownState, "failure rates are unavailable: \(reason)") }
        for hook in hooks.value ?? [] {
            let span = Duration.seconds(max(0, (-hook.since.timeIntervalSinceNow).rounded()))
            say(
                .failingHook,
                "\(hook.function) of \(hook.room) has failed \(Humane.count(hook.times, "time")) in \(Humane.duration(span)): \(hook.sentence)"
            )
        }
        for queue in queues.value ?? [] where queue.pausedAt != nil && queue.ready > 0 {
            let span = queue.pausedAt.map { Duration.seconds(max(0, (-$0.timeIntervalSinceNow).rounded())) } ?? .zero
            say(
                .pausedQueue,
                "\(queue.name) has been paused for \(Humane.duration(span)), and \(queue.amount(cap: cap).text) \(queue.ready == 1 ? "job waits" : "jobs wait")",
                command: whys[queue.name]?["command"]?.text ?? "millrace queues resume \(queue.name)",
                about: .queue(queue.name), age: queue.pausedAt.map { max(0, -$0.timeIntervalSinceNow) })
        }
        for room in unservedRooms { say(.unservedRoom, room.sentence, about: .room(room.name), age: room.oldest) }
        for room in rooms.value ?? [] where room.becomesFiles && room.isUsed {
            say(.mailFiles, "mail is written to files: no mail service is configured")
        }
        return found
    }

    private func command(for trouble: TroubleRow) -> String {
        switch trouble.trouble {
        case .build:
            // A promotion is taken back only where another build was promoted before.
            let promoted = (builds.value ?? []).filter { $0.promotedAt != nil || $0.state == "canary" }
            // A version is the program's with the build behind a plus sign.
            let build = trouble.build.map { String($0.split(separator: "+").last ?? "") }
            let canRollBack = promoted.count > 1 && promoted.contains { $0.build == build || $0.build == trouble.build }
            return canRollBack ? "millrace versions rollback" : trouble.alarm.look
        case .failing: return "millrace failures list" + (trouble.kind.map { " --kind \($0)" } ?? "")
        case .retrying: return trouble.alarm.look + (trouble.kind.map { " --kind \($0)" } ?? "")
        }
    }

    private var unservedRooms: [RoomRow] {
        let noWorker = workers.value?.isEmpty ?? false
        return (rooms.value ?? []).filter { $0.isUnserved && !(noWorker && $0.isKinds) }
    }

    /// Kinds that no worker knows, except for those that belong to a room.
    package var unnamedOrphans: [Orphan] {
        let rooms = unservedRooms
        return (orphans.value ?? []).filter { orphan in !rooms.contains { $0.owns(kind: orphan.kind) } }
    }
}
