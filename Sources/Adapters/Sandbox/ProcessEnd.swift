import Glibc

/// The meaning of a process's end, judged without access to the process.
package struct ProcessEnd: Sendable, Equatable {
    package var status: Int32
    package var usage: Usage
    /// We have killed it, and why.
    package var sentence: ChildFailure.Reason?
    package var messages: String

    package init(status: Int32, usage: Usage, sentence: ChildFailure.Reason? = nil, messages: String = "") {
        self.status = status
        self.usage = usage
        self.sentence = sentence
        self.messages = messages
    }

    private var signal: Int32 { status & 0x7f }

    /// Words of the runtimes and libraries in question for memory that could not be had.
    private static let outOfMemory = [
        "bad_alloc", "allocate memory", "failed to allocate", "out of memory", "memory exhausted", "not enough memory",
    ]

    package func failure(_ limits: SandboxedChild.Limits) -> ChildFailure {
        let (reason, text) = verdict(limits)
        return ChildFailure(reason, text, messages: messages, usage: usage)
    }

    private func verdict(_ limits: SandboxedChild.Limits) -> (ChildFailure.Reason, String) {
        if let sentence {
            switch sentence {
            case .timeout: return (.timeout, "the child was killed after \(limits.wall)")
            case .starved:
                return (
                    .starved, "the machine is too busy: the child had \(usage.cpu) of processor time and was killed"
                )
            case .misspoke: return (.misspoke, "the child sent something that our children never send; it was killed")
            case .cancelled: return (.cancelled, "the child was killed: nobody waits for it any more")
            default: return (sentence, "the child was killed")
            }
        }
        switch signal {
        case 0:
            let code = status >> 8 & 0xff
            return (.exited(code), "the child ended with \(code) and without an answer")
        case SIGXCPU: return (.cpu, "the child computed for more than \(limits.cpu)")
        case SIGXFSZ: return (.fileSize, "the child wrote more than \(limits.fileSize) bytes into a file")
        case SIGKILL:
            return usage.cpu >= limits.cpu
                ? (.cpu, "the child computed for more than \(limits.cpu)")
                : (.killed, "the child was killed from outside; the machine may be short of memory")
        default:
            let said = messages.lowercased()
            if usage.peak >= limits.memory / 10 * 7 || Self.outOfMemory.contains(where: { said.contains($0) }) {
                return (.memory, "the child asked for more than its \(limits.memory >> 20) MiB of memory")
            }
            return (.crash(signal: signal), "the child crashed with signal \(signal)")
        }
    }
}
