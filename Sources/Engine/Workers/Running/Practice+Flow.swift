import MillraceJobs

extension Practice {
    /// Spawns children that sleep, and one job after all of them.
    struct Fan: Job {
        static let kind = "practice.fan"
        var children: Int
        var ms: Int?
    }

    struct Child: Job {
        static let kind = "practice.child"
        var n: Int
        var ms: Int?
    }

    /// Counts what came before it, and adds up what that gave.
    struct Gather: Job {
        static let kind = "practice.gather"
    }

    struct Gathered: Codable, Sendable {
        var children: Int
        var sum: Int
    }

    static let fanHandler = Handler(Fan.self) { job, context in
        guard (1...1_000_000).contains(job.children) else { return .discard("children must be 1 to 1,000,000") }
        let children = (1...job.children).lazy.map { Child(n: $0, ms: job.ms) }
        try await context.spawn(children, then: Gather())
        return .done
    }

    static let childHandler = Handler(Child.self) { job, context in
        if let ms = job.ms, ms > 0 { try await Task.sleep(for: .milliseconds(ms)) }
        try context.result(job.n)
        return .done
    }

    static let gatherHandler = Handler(Gather.self) { _, context in
        var gathered = Gathered(children: 0, sum: 0)
        for try await child in context.earlier(as: Int.self) {
            guard let n = child.result else { continue }  // the one that spawned us gave none
            gathered.children += 1
            gathered.sum += n
        }
        try context.result(gathered)
        return .done
    }
}
