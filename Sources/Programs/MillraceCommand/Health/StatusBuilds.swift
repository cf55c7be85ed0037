import MillraceQueues

/// A build of the workers' program: how many workers run it, and whether it gets the new jobs.
struct StatusBuild: Equatable {
    var build: String
    var workers = 0
    var running = 0
    /// Of pinned workers, as in `versions list`; nil: they are not pinned.
    var state: String?
    var percent: Int?
    var isStranded = false

    /// Builds with living workers or with a say in who gets new jobs, those that run most first.
    static func all(workers: [WorkerRow], pinned: [BuildRow]) -> [StatusBuild] {
        var found: [String: StatusBuild] = [:]
        for worker in workers {
            let name = worker.build ?? worker.version
            found[name, default: StatusBuild(build: name)].workers += 1
            found[name]?.running += worker.running
        }
        for row in pinned
        where found[row.build] != nil || row.isStranded || row.state == "promoted" || row.percent != nil {
            var one = found[row.build] ?? StatusBuild(build: row.build)
            (one.state, one.percent, one.isStranded) = (row.state, row.percent, row.isStranded)
            found[row.build] = one
        }
        return found.values.sorted { ($0.running, $0.workers, $1.build) > ($1.running, $1.workers, $0.build) }
    }

    var json: JSONValue {
        [
            "build": .string(build), "workers": .int(workers), "running": .int(running),
            "promoted": .bool(state == "promoted"), "state": JSONValue(state), "percent": JSONValue(percent),
            "stranded": .bool(isStranded),
        ]
    }

    var sentence: String {
        let standing = percent.map { "\(state ?? "canary") \($0) %" } ?? state
        return "\(build)\(standing.map { " (\($0))" } ?? ""): \(Humane.count(workers, "worker")), \(running) running"
    }
}

extension StatusReport {
    var runningBuilds: [StatusBuild] { StatusBuild.all(workers: workers.value ?? [], pinned: builds.value ?? []) }
}
