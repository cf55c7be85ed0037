import CommandKit

/// Which tenths of the way have been passed: progress in ten lines, where a line cannot be redrawn.
package struct Tenths: Sendable {
    private var passed = 0

    package init() {}

    /// True once for each tenth.
    package mutating func pass(_ done: Int, of all: Int) -> Bool {
        guard all > 0, done * 10 / all > passed else { return false }
        passed = done * 10 / all
        return true
    }
}
