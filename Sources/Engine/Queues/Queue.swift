/// The queue's statements. Each runs on the caller's connection; there is no state here.
package enum Queue {}

/// The fence of a claimed batch: the session's random number, and a counter that is never used again. The counter's two low bits are the
/// retention class, and the third marks a lone suspect.
package struct LeaseToken: Hashable, Sendable, CustomStringConvertible {
    package let session: Int64
    package let number: Int64

    package init(session: Int64, number: Int64) {
        self.session = session
        self.number = number
    }

    package var isLone: Bool { number & 4 != 0 }

    package var description: String {
        "\(String(UInt64(bitPattern: session), radix: 16))-\(number)"
    }
}

/// A lane of a queue: priority × 4 + what kind of line it is.
package struct Lane: Hashable, Sendable {
    package enum Line: Int32, Sendable, CaseIterable {
        /// Handed back or rescued: in front of the normal line.
        case putBack = 0
        case normal = 1
        /// Crashed twice: few of these run in a process at once.
        case suspect = 2
        /// Crashed three times: runs as the only suspect of its process.
        case lone = 3
    }

    package let queue: Int32
    package let code: Int32

    package init(queue: Int32, code: Int32) {
        self.queue = queue
        self.code = code
    }

    package init(queue: Int32, priority: Int32, line: Line) {
        self.init(queue: queue, code: priority * 4 + line.rawValue)
    }

    package var priority: Int32 { code >> 2 }
    package var line: Line { Line(rawValue: code & 3) ?? .normal }
}
