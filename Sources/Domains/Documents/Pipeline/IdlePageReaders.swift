/// Warm engines that are idle. An engine reads only pages of one tenant and its languages: a page that takes an engine over cannot see
/// other tenants' pages.
package actor IdlePageReaders {
    package struct Label: Hashable, Sendable {
        var tenant: String?
        var languages: [String]
    }

    private let most: Int
    private let make: @Sendable (Label) -> ChildPageReader
    private var idle: [(label: Label, engine: ChildPageReader, since: ContinuousClock.Instant)] = []
    private var isClosed = false

    /// - Parameter most: how many stay warm.
    package init(most: Int, make: @escaping @Sendable (Label) -> ChildPageReader) {
        self.most = most
        self.make = make
    }

    package func take(_ label: Label) async -> ChildPageReader {
        if let at = idle.lastIndex(where: { $0.label == label }) { return idle.remove(at: at).engine }
        if idle.count >= most {
            let oldest = idle.removeFirst()
            _ = await oldest.engine.end()
        }
        return make(label)
    }

    package func put(_ engine: ChildPageReader, _ label: Label) async {
        guard !isClosed else {
            _ = await engine.end()
            return
        }
        idle.append((label, engine, .now))
        if idle.count > most { _ = await idle.removeFirst().engine.end() }
    }

    /// Stops engines that have been idle for `pause`, to free their memory.
    package func tidy(idleFor pause: Duration = .seconds(20)) async {
        while let first = idle.first, .now - first.since > pause {
            idle.removeFirst()
            _ = await first.engine.end()
        }
    }

    package func close() async {
        isClosed = true
        while let last = idle.popLast() { _ = await last.engine.end() }
    }
}
