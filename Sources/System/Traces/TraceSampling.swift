/// Which traces are recorded, as `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG` say.
package struct TraceSampling: Sendable, Equatable {
    /// The share of the traces that begin here, from 0 to 1.
    package var share: Double
    /// What the caller decided counts; otherwise the share decides again, by the number of the trace.
    package var heedsParent: Bool

    package init(share: Double, heedsParent: Bool) {
        self.share = min(max(share, 0), 1)
        self.heedsParent = heedsParent
    }

    /// What OpenTelemetry does where nothing is set.
    package static let standard = TraceSampling(share: 1, heedsParent: true)

    package static let names = [
        "always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off",
        "parentbased_traceidratio",
    ]

    /// nil: the name is none of these, or the ratio is not a number from 0 to 1.
    package init?(sampler: String, argument: String?) {
        let ratio: Double
        switch argument {
        case nil, "": ratio = 1
        case .some(let text):
            guard let number = Double(text), (0...1).contains(number) else { return nil }
            ratio = number
        }
        switch sampler {
        case "always_on": self.init(share: 1, heedsParent: false)
        case "always_off": self.init(share: 0, heedsParent: false)
        case "traceidratio": self.init(share: ratio, heedsParent: false)
        case "parentbased_always_on": self.init(share: 1, heedsParent: true)
        case "parentbased_always_off": self.init(share: 0, heedsParent: true)
        case "parentbased_traceidratio": self.init(share: ratio, heedsParent: true)
        default: return nil
        }
    }

    /// The same for all who see this trace with the same share, so that a trace is kept whole.
    package func takes(_ trace: TraceID, under parent: TraceContext?) -> Bool {
        if heedsParent, let parent { return parent.isSampled }
        if share >= 1 { return true }
        // 63 bits of the number, as other implementations compare it.
        return Double(trace.low >> 1) < share * 0x1p63
    }
}
