import FoundationEssentials

extension Invocation {
    /// What --with asks for; nil: nothing.
    func workbenchPlan() throws(Failure) -> Workbench.Plan? {
        guard let program = parsed.string("with") else {
            for (flag, isGiven) in [
                ("--build", parsed.string("build") != nil), ("--watch", !parsed.list("watch").isEmpty),
                ("--arg", !parsed.list("arg").isEmpty), ("--replay", parsed.integer("replay") != nil),
            ] where isGiven {
                throw Failure(
                    .misused, "\(flag) needs --with",
                    hint: "--with names your own program, such as .build/debug/receipts")
            }
            return nil
        }
        let build = parsed.string("build")
        let absolute = program.hasPrefix("/") ? program : surroundings.workingDirectory + "/" + program
        if build == nil, !FileManager.default.isExecutableFile(atPath: absolute) {
            throw Failure(.misused, "--with: there is no program \(program)", hint: "--build says how it is made")
        }
        return Workbench.Plan(
            program: absolute, arguments: parsed.list("arg"), build: build,
            watched: try watched(build == nil ? absolute : nil), environment: environment,
            buildEnvironment: environment)
    }

    private func watched(_ program: String?) throws(Failure) -> [String] {
        let given = parsed.list("watch").map { $0.hasPrefix("/") ? $0 : surroundings.workingDirectory + "/" + $0 }
        for path in given where !FileManager.default.fileExists(atPath: path) {
            throw Failure(.misused, "--watch: there is no \(path)")
        }
        if !given.isEmpty { return given }
        if let program { return [program] }
        let usual = ["Sources", "Package.swift"].map { surroundings.workingDirectory + "/" + $0 }
            .filter { FileManager.default.fileExists(atPath: $0) }
        guard !usual.isEmpty else {
            throw Failure(
                .misused, "there is neither Sources nor Package.swift here", hint: "--watch names what to watch")
        }
        return usual
    }

    /// What --replay asks for; nil: nothing.
    func takeReplay() async throws -> Replay? {
        guard let id = parsed.integer("replay") else {
            for (flag, isGiven) in [("--args", parsed.string("args") != nil), ("--debugger", parsed.isOn("debugger"))]
            where isGiven {
                throw Failure(.misused, "\(flag) is for --replay")
            }
            return nil
        }
        let args = try parsed.string("args").map { try json(at: $0, named: "the arguments", most: 1_048_576) }
        return try await Replay.take(Int64(id), args: args, self)
    }
}

extension Workbench.Plan {
    /// With the address of the database here.
    /// - Parameter replays: no other address stays in its environment.
    func at(_ location: String, replays: Bool) -> Workbench.Plan {
        var plan = self
        if replays {
            for name in environment.keys
            where name.hasPrefix("PG") || name.hasPrefix("DATABASE_") || name.hasPrefix("MILLRACE_DIRECT_URL") {
                plan.environment[name] = nil
            }
        }
        plan.environment["DATABASE_URL"] = location.isEmpty ? nil : location
        return plan
    }
}
