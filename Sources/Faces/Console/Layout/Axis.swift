import FoundationEssentials

/// What the values of a chart are, and so where the steps of its axis stand and how they are spelled.
enum Scale: Sendable {
    case count
    /// A second.
    case rate
    /// Seconds.
    case span
    case bytes

    func spell(_ value: Double) -> String {
        switch self {
        case .count: Figures.count(Int(value.rounded()))
        case .rate: value == 0 ? "0" : "\(Figures.brief(value, 2))/s"
        case .span: value == 0 ? "0" : Figures.span(value)
        case .bytes: Figures.bytes(Int(value))
        }
    }

    /// From 0 to at least `most`, two to five of them at equal distances, no two spelled alike.
    func steps(to most: Double) -> [Double] {
        for count in [4.0, 3, 2] {
            let step = nextSize(most / count)
            let last = (most / step - 1e-9).rounded(.up)
            guard last >= 2 else { continue }
            let steps = stride(from: 0, through: last, by: 1).map { $0 * step }
            if steps.count <= 5, Set(steps.map(spell)).count == steps.count { return steps }
        }
        return [0, nextSize(most)]
    }

    /// The least size of this scale's that people count in and that is not smaller.
    private func nextSize(_ value: Double) -> Double {
        let sizes: [Double]
        switch self {
        case .count: sizes = [1]
        case .rate: sizes = [0.01]
        case .span:
            sizes = [
                0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200,
                1800,
                3600, 7200, 14_400, 21_600, 43_200, 86_400,
            ]
        case .bytes: sizes = (0...50).map { Double(1 << $0) }
        }
        if let size = sizes.first(where: { $0 >= value }) { return size }
        var step = sizes[sizes.count - 1]
        while true {
            for factor in [1.0, 2, 5] where step * factor >= value { return step * factor }
            step *= 10
        }
    }
}
