package import RoomKit

extension AIAdmin.Troubles {
    package var judged: Check.Result {
        if switched > 0, providers.isEmpty {
            return .warning(
                "it is switched on for \(switched), and no worker has a model to ask",
                advice: "set MILLRACE_AI_OPENAI_MODEL or MILLRACE_AI_ANTHROPIC_MODEL for a worker, and start it")
        }
        if switched > 0, workers == 0 {
            return .warning(
                "no running worker asks models",
                advice:
                    "start one that has MILLRACE_AI_OPENAI_MODEL or MILLRACE_AI_ANTHROPIC_MODEL, and takes the queue ai"
            )
        }
        if late > 0 {
            return .warning(
                "\(Humane.count(late, "question")) \(late == 1 ? "has" : "have") no answer after 15 minutes, "
                    + "the oldest after \(Humane.duration(.seconds(oldest)))",
                advice: "see millrace ai list --status waiting; millrace why <job>; millrace providers list")
        }
        if !unserved.isEmpty, switched > 0 {
            return .warning(
                "no running worker takes questions of \(unserved.joined(separator: ", "))",
                advice:
                    "start workers of this version: earlier ones do not take questions of purposes that an app added")
        }
        if undeleted > 0 {
            let more = undeleted > undeletedNames.count ? ", …" : ""
            return .warning(
                "what batches asked is still at the provider, and could not be deleted for "
                    + "\(Humane.duration(.seconds(undeletedFor))): \(undeletedNames.joined(separator: ", "))\(more)",
                advice:
                    "the last try said: \(undeletedWhy ?? "nothing"); it is tried again for two weeks, then delete it there"
            )
        }
        if !unbounded.isEmpty, switched > 0 {
            return .warning(
                "clients may ask for \(unbounded.joined(separator: ", ")) without a limit for each person",
                advice: "say how many tokens a day: millrace ai purpose put \(unbounded[0]) --client-tokens N")
        }
        if switched == 0 { return .ok("switched on for nobody") }
        return .ok("of \(providers.joined(separator: " and ")), switched on for \(switched)")
    }
}
