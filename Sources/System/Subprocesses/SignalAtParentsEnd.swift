import CLinux

/// A process that does not outlive its parent.
package enum SignalAtParentsEnd {
    /// From now on the kernel sends this signal when the thread that started this process ends, also once it has become another program.
    package static func ask(_ signal: Int32) {
        _ = millrace_signal_at_parents_end(signal)
    }
}
