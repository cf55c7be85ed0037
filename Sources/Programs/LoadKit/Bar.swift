package import CommandKit

/// One promise with its measurement: the bar, what was measured, met or missed.
package struct Bar: Sendable {
    package let what: String
    package let bar: String
    package let measured: String
    package let met: Bool

    package init(what: String, bar: String, measured: String, met: Bool) {
        (self.what, self.bar, self.measured, self.met) = (what, bar, measured, met)
    }

    // Not inlined, as what else all scenarios share: the compiler copies an asynchronous function for each of its suspension
    // points, of which a scenario has dozens, with everything that was inlined into it.
    @inline(never)
    package static func atMost(_ what: String, _ bar: Double, measured: Double, unit: String) -> Bar {
        Bar(what: what, bar: "≤ \(spell(bar)) \(unit)", measured: "\(spell(measured)) \(unit)", met: measured <= bar)
    }

    @inline(never)
    package static func atLeast(_ what: String, _ bar: Double, measured: Double, unit: String) -> Bar {
        Bar(what: what, bar: "≥ \(spell(bar)) \(unit)", measured: "\(spell(measured)) \(unit)", met: measured >= bar)
    }

    private static func spell(_ value: Double) -> String {
        Humane.decimal(value, places: value < 10 ? 2 : value < 1000 ? 1 : 0)
    }

    package var json: JSONValue {
        ["what": .string(what), "bar": .string(bar), "measured": .string(measured), "met": .bool(met)]
    }
}

extension Invocation {
    /// Prints the bars of a scenario. Exit 0, or 1 when one is missed: with `--strict`, or always where the scenario says so.
    @inline(never)
    package func report(
        _ scenario: String, _ bars: [Bar], figures: [(String, JSONValue)], isStrict: Bool = false
    ) -> ExitCode {
        console.show([
            "scenario": .string(scenario),
            "figures": .object(figures.map { JSONValue.Member(key: $0.0, value: $0.1) }),
            "bars": .array(bars.map(\.json)),
        ]) {
            guard !bars.isEmpty else { return }
            var table = Table([
                .init("what", shrinks: true), .init("bar", .trailing), .init("measured", .trailing), .init(""),
            ])
            for bar in bars {
                table.add([
                    .init(bar.what), .init(bar.bar), .init(bar.measured),
                    bar.met ? .init("met", .green) : .init("missed", .red),
                ])
            }
            console.print(table)
        }
        return (isStrict || parsed.isOn("strict")) && bars.contains { !$0.met } ? .failed : .done
    }
}

/// The value at a share of a sorted list.
@inline(never)
package func percentile(_ sorted: [Double], _ share: Double) -> Double {
    guard !sorted.isEmpty else { return .nan }
    let rank = Int((Double(sorted.count) * share).rounded(.up))
    return sorted[min(max(rank, 1), sorted.count) - 1]
}
