/// Who of each name goes on, and who waits. No I/O: the shell is `Turns`.
struct TurnLines: Sendable {
    enum Answer: Sendable, Equatable {
        case granted
        /// In the line of its name, the last.
        case waits
        /// The line is as long as it may be.
        case full
    }

    private struct Line: Sendable {
        var running = 0
        var waiting: [UInt64] = []
    }

    let atOnce: Int
    let mostWaiting: Int
    private var lines: [String: Line] = [:]

    init(atOnce: Int, mostWaiting: Int) {
        (self.atOnce, self.mostWaiting) = (atOnce, mostWaiting)
    }

    /// False: it would have to wait.
    mutating func grant(_ name: String) -> Bool {
        guard lines[name, default: Line()].running < atOnce else { return false }
        lines[name, default: Line()].running += 1
        return true
    }

    mutating func ask(_ name: String, _ caller: UInt64) -> Answer {
        if grant(name) { return .granted }
        guard lines[name, default: Line()].waiting.count < mostWaiting else { return .full }
        lines[name, default: Line()].waiting.append(caller)
        return .waits
    }

    /// One that went on has ended. Returns who goes on in its place.
    mutating func end(_ name: String) -> UInt64? {
        guard var line = lines[name] else { return nil }
        if !line.waiting.isEmpty {
            let next = line.waiting.removeFirst()
            lines[name] = line
            return next
        }
        line.running -= 1
        lines[name] = line.running > 0 ? line : nil
        return nil
    }

    /// It waits no longer. False: it did not wait, or its turn has come already.
    mutating func giveUp(_ name: String, _ caller: UInt64) -> Bool {
        guard let place = lines[name]?.waiting.firstIndex(of: caller) else { return false }
        lines[name]?.waiting.remove(at: place)
        return true
    }

    func waiting(of name: String) -> Int { lines[name]?.waiting.count ?? 0 }

    /// Names with somebody who runs; for tests.
    var count: Int { lines.count }
}
