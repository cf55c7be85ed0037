import CLinux

/// A process that gives up calling others.
package enum Offline {
    /// From now on none of its threads can open or connect a socket. False: the kernel does not allow that.
    package static func go() -> Bool { millrace_go_offline() == 0 }
}
