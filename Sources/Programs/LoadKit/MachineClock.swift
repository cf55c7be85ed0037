import Glibc

/// The clock of this machine, which the database dates by, too.
package enum MachineClock {
    package static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
