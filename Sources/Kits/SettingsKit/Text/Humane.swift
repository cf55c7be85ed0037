/// Numbers for people; machines read JSON.
package enum Humane {
    /// `1,234,567`
    package static func count(_ number: Int) -> String {
        let digits = String(number.magnitude)
        var text = number < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { text += "," }
            text.append(digit)
        }
        return text
    }

    /// `1 job`, `1,234 jobs`
    package static func count(_ number: Int, _ noun: String) -> String {
        "\(count(number)) \(noun)\(number == 1 ? "" : "s")"
    }

    /// `3m 12s`, `412 ms`, `1.24 s`: two units at most.
    package static func duration(_ duration: Duration) -> String {
        if duration < .zero { return "-" + Self.duration(.zero - duration) }
        let (seconds, attoseconds) = duration.components
        let microseconds = attoseconds / 1_000_000_000_000
        if seconds == 0 {
            if microseconds == 0 { return "0 s" }
            if microseconds < 1000 { return "\(microseconds) µs" }
            return microseconds < 10_000
                ? "\(decimal(Double(microseconds) / 1000, places: 1)) ms" : "\(microseconds / 1000) ms"
        }
        if seconds < 10 { return "\(decimal(Double(seconds) + Double(microseconds) / 1_000_000, places: 2)) s" }
        if seconds < 60 { return "\(seconds) s" }
        let parts = [
            (seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s"),
        ]
        let first = parts.firstIndex { $0.0 > 0 } ?? 0
        return parts[first...].prefix(2).filter { $0.0 > 0 }.map { "\($0.0)\($0.1)" }.joined(separator: " ")
    }

    /// `3m 12s ago`, `in 5m`, `now`: from the distance to now, negative for the past.
    package static func relative(_ distance: Duration) -> String {
        if distance.magnitude < .seconds(1) { return "now" }
        // Fractions of a second would only flicker.
        let whole = Duration.seconds(distance.components.seconds)
        let text = duration(whole.magnitude)
        let plain = text.hasSuffix(" s") ? "\(whole.magnitude.components.seconds)s" : text
        return distance < .zero ? "\(plain) ago" : "in \(plain)"
    }

    /// `512 B`, `1.5 KiB`, `10 MiB`
    package static func bytes(_ count: Int) -> String {
        if count.magnitude < 1024 { return "\(count) B" }
        var size = Double(count)
        var unit = ""
        for name in ["KiB", "MiB", "GiB", "TiB", "PiB"] where size.magnitude >= 1023.95 {
            size /= 1024
            unit = name
        }
        return "\(decimal(size, places: 1)) \(unit)"
    }

    /// `12.5 %`
    package static func percent(_ share: Double) -> String { "\(decimal(share * 100, places: 1)) %" }

    /// Without Foundation there is no `%.2f`; trailing zeros are dropped, since they say nothing.
    package static func decimal(_ number: Double, places: Int) -> String {
        guard number.isFinite, number.magnitude < 1e15 else { return "\(number)" }
        let scale = (0..<places).reduce(1) { scale, _ in scale * 10 }
        let scaled = Int((number * Double(scale)).rounded())
        let fraction = String(Int(scaled.magnitude) % scale)
        let padded = String(repeating: "0", count: max(0, places - fraction.count)) + fraction
        let kept = String(padded.reversed().drop { $0 == "0" }.reversed())
        let whole = (scaled < 0 ? "-" : "") + String(Int(scaled.magnitude) / scale)
        return kept.isEmpty ? whole : "\(whole).\(kept)"
    }
}

extension Duration {
    fileprivate var magnitude: Duration { self < .zero ? .zero - self : self }
}
