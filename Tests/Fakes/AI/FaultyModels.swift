import Synchronization

/// Models as they are on a bad day: chosen by a seed, this share of the calls ends in one of the faults, and no more calls a second are taken
/// than a bucket allows. It answers the purpose `sentiment`, with the mark of the question as the summary.
package final class FaultyModels: Sendable {
    package struct Options: Sendable {
        package var seed: UInt64 = 1
        /// Of a hundred calls.
        package var faults = 12
        /// Calls a second; 0: no bound.
        package var perSecond = 0.0

        package init() {}
    }

    package struct Counts: Sendable {
        package var calls = 0
        package var throttled = 0
        /// While OpenAI's format was down.
        package var whileDown = 0
        package var faults: [String: Int] = [:]
    }

    private struct State {
        var random: UInt64
        var tokens = 0.0
        var filled = ContinuousClock.now
        var isDown = false
        var counts = Counts()
    }

    private let options: Options
    private let state: Mutex<State>

    package init(_ options: Options) {
        self.options = options
        state = Mutex(State(random: options.seed, tokens: options.perSecond))
    }

    package var counts: Counts { state.withLock { $0.counts } }

    /// From here on OpenAI's format answers nothing but 503, or answers again.
    package func down(_ isDown: Bool) { state.withLock { $0.isDown = isDown } }

    /// What stands between `[[` and `]]`.
    package static func mark(in prompt: String) -> String? {
        guard let start = prompt.firstRange(of: "[["), let end = prompt[start.upperBound...].firstRange(of: "]]") else {
            return nil
        }
        return String(prompt[start.upperBound..<end.lowerBound])
    }

    package static func answer(to mark: String) -> String {
        #"{"sentiment": "neutral", "concern": "none", "summary": "about \#(mark)"}"#
    }

    package func behaviour(for asked: FakeModels.Asked) -> FakeModels.Behaviour {
        let good = Self.answer(to: Self.mark(in: asked.prompt) ?? "nothing")
        return state.withLock { state in
            state.counts.calls += 1
            if state.isDown, !asked.isAnthropic {
                state.counts.whileDown += 1
                return .status(503, headers: [], body: #"{"error": {"type": "server_error"}}"#)
            }
            if let wait = refill(&state) {
                state.counts.throttled += 1
                return Self.throttled(wait, perSecond: options.perSecond)
            }
            let roll = Int(next(&state) % 100)
            guard roll < options.faults else { return .answer(good) }
            let (name, behaviour) = Self.fault(Int(next(&state) % 10), good, isAnthropic: asked.isAnthropic)
            state.counts.faults[name, default: 0] += 1
            return behaviour
        }
    }

    private static func throttled(_ wait: Double, perSecond: Double) -> FakeModels.Behaviour {
        .status(
            429,
            headers: [
                ("retry-after", "\(Int(wait.rounded(.up)))"), ("x-ratelimit-limit-requests", "\(Int(perSecond * 60))"),
                ("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "\(wait)s"),
            ], body: #"{"error": {"type": "rate_limit_error"}}"#)
    }

    private static func fault(
        _ number: Int, _ good: String, isAnthropic: Bool
    ) -> (String, FakeModels.Behaviour) {
        switch number {
        case 0:
            ("429", .status(429, headers: [("retry-after", "1")], body: #"{"error": {"type": "rate_limit_error"}}"#))
        case 1: ("500", .status(500, headers: [], body: "oops"))
        case 2: ("503", .status(503, headers: [], body: #"{"error": {"type": "api_error"}}"#))
        case 3: ("lost", .lost(String(good.prefix(30))))
        case 4: ("stalled", .stalled(String(good.prefix(30))))
        case 5: ("error in the stream", .failing(String(good.prefix(30))))
        case 6: ("no JSON", .answer("I would rather not answer in JSON."))
        case 7: ("cut at its bound", .cutAtBound(String(good.prefix(40))))
        case 8: ("uncounted", .answerUncounted(good))
        // The other one then answers: two that refuse would be an end.
        default: isAnthropic ? ("no JSON", .answer("{}")) : ("refused", .refuse)
        }
    }

    /// Takes one from the bucket, or says how long it will be empty.
    private func refill(_ state: inout State) -> Double? {
        guard options.perSecond > 0 else { return nil }
        let now = ContinuousClock.now
        let passed = state.filled.duration(to: now)
        let seconds = Double(passed.components.seconds) + Double(passed.components.attoseconds) / 1e18
        state.filled = now
        state.tokens = min(options.perSecond, state.tokens + seconds * options.perSecond)
        guard state.tokens >= 1 else { return (1 - state.tokens) / options.perSecond }
        state.tokens -= 1
        return nil
    }

    /// SplitMix64.
    private func next(_ state: inout State) -> UInt64 {
        state.random &+= 0x9e37_79b9_7f4a_7c15
        var value = state.random
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}
