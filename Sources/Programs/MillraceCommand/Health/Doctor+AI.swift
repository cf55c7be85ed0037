import AI

extension Doctor {
    static func judge(_ state: AIAdmin.Troubles) -> Check.Result {
        if state.switched > 0, state.providers.isEmpty {
            return .warning(
                "it is switched on for \(state.switched), and no worker has a model to ask",
                advice: "set MILLRACE_AI_OPENAI_MODEL or MILLRACE_AI_ANTHROPIC_MODEL for a worker, and start it")
        }
        if state.switched > 0, state.workers == 0 {
            return .warning(
                "no living worker asks models",
                advice:
                    "start one that has MILLRACE_AI_OPENAI_MODEL or MILLRACE_AI_ANTHROPIC_MODEL, and takes the queue ai"
            )
        }
        if state.late > 0 {
            return .warning(
                "\(Humane.count(state.late, "question")) \(state.late == 1 ? "has" : "have") no answer after 15 minutes, "
                    + "the oldest after \(Humane.duration(.seconds(state.oldest)))",
                advice: "see millrace ai list --status waiting; millrace why <job>; millrace providers list")
        }
        if !state.unserved.isEmpty, state.switched > 0 {
            return .warning(
                "no living worker takes questions of \(state.unserved.joined(separator: ", "))",
                advice:
                    "start workers of this version: earlier ones do not take questions of purposes that an app added")
        }
        if state.undeleted > 0 {
            let more = state.undeleted > state.undeletedNames.count ? ", …" : ""
            return .warning(
                "what batches asked is still at the provider, and could not be deleted for "
                    + "\(Humane.duration(.seconds(state.undeletedFor))): \(state.undeletedNames.joined(separator: ", "))\(more)",
                advice:
                    "the last try said: \(state.undeletedWhy ?? "nothing"); it is tried again for two weeks, then delete it there"
            )
        }
        if !state.unbounded.isEmpty, state.switched > 0 {
            return .warning(
                "clients may ask for \(state.unbounded.joined(separator: ", ")) without a bound of its own for a person",
                advice: "say how many tokens a day: millrace ai purpose put \(state.unbounded[0]) --client-tokens N")
        }
        if state.switched == 0 { return .ok("switched on for nobody") }
        return .ok("of \(state.providers.joined(separator: " and ")), switched on for \(state.switched)")
    }
}
