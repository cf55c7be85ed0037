/// Why a child gave no answer.
package struct ChildFailure: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Reason: Sendable, Equatable {
        /// The child worked, and says that the input cannot be read; its word for the reason.
        case refused(String)
        /// It asked for more memory than it may have.
        case memory
        /// It computed for longer than it may.
        case cpu
        /// It took longer than allowed.
        case timeout
        /// It took longer than allowed, because the machine gave it too little processor time.
        case starved
        /// It wrote a larger file than it may.
        case fileSize
        /// It said something that no child of ours says, or too much of it.
        case misspoke
        case crash(signal: Int32)
        /// It ended without having answered.
        case exited(Int32)
        /// Somebody killed it who was not us: most likely the kernel, for want of memory on the machine.
        case killed
        case cancelled
        case cannotStart
    }

    package var reason: Reason
    /// For an operator; the child's own output is in `messages` and never here.
    package var sentence: String
    /// The end of its stderr, with only printable characters.
    package var messages = ""
    package var usage = Usage()

    package init(_ reason: Reason, _ sentence: String, messages: String = "", usage: Usage = Usage()) {
        self.reason = reason
        self.sentence = sentence
        self.messages = messages
        self.usage = usage
    }

    package var description: String { sentence }

    /// The same input would end the same way: trying again is of no use.
    package var isDeterministic: Bool {
        switch reason {
        case .refused, .memory, .cpu, .fileSize, .misspoke: true
        case .timeout, .starved, .crash, .exited, .killed, .cancelled, .cannotStart: false
        }
    }
}

/// What a child has used.
package struct Usage: Sendable, Equatable {
    package var cpu: Duration = .zero
    /// The most it had in memory at once, in bytes.
    package var peak = 0

    package init() {}
}
