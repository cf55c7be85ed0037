/// What one run knows about its job's steps. Pure; the context puts a lock around it.
struct RecordedSteps: Sendable {
    enum State {
        /// Nobody has asked yet. Next: known.
        case unread
        /// By name. Stays.
        case known([String: [UInt8]])
    }

    enum Turn: Equatable {
        /// Read the record first.
        case read
        /// An earlier run, or this one, has recorded it.
        case recorded([UInt8])
        /// This caller does it; `settle` or `leave` follows.
        case begin
        case overlaps
        case full
    }

    private(set) var state = State.unread
    private var underWay: Set<String> = []

    mutating func turn(_ name: String) -> Turn {
        guard case .known(let values) = state else { return .read }
        if let value = values[name] { return .recorded(value) }
        if underWay.contains(name) { return .overlaps }
        if values.count + underWay.count >= Context.mostSteps { return .full }
        underWay.insert(name)
        return .begin
    }

    /// Two steps that begin together may both have read the record; a value that was settled meanwhile stays.
    mutating func read(_ values: [String: [UInt8]]) {
        guard case .unread = state else { return }
        state = .known(values)
    }

    mutating func settle(_ name: String, _ value: [UInt8]) {
        underWay.remove(name)
        guard case .known(var values) = state else { return }
        state = .unread  // so that the values are changed in place
        values[name] = value
        state = .known(values)
    }

    /// The step failed: nothing is recorded, and it may be tried again.
    mutating func leave(_ name: String) {
        underWay.remove(name)
    }
}
