import JSON

/// What a request takes from the caller's buckets. Calls count by their number and their bytes, and what a call carries out counts by its
/// entries: five hundred operations are not one. No I/O.
package struct GatewayCost: Sendable, Equatable {
    /// From the bucket of calls.
    package var calls = 0
    /// From the bucket of operations.
    package var operations = 0
    /// Uses of functions that may have buckets of their own.
    package var functions: [String: Int] = [:]

    package init(calls: Int = 0, operations: Int = 0, functions: [String: Int] = [:]) {
        (self.calls, self.operations, self.functions) = (calls, operations, functions)
    }

    /// This number of bytes of a body, or of an answer, counts as a further call.
    static let bytesOfCall = 65_536
    /// The first entries of a call's lists are part of the call. Each further one is an operation.
    static let freeEntries = 20

    /// The further calls that these bytes count as.
    static func calls(ofBytes bytes: Int) -> Int { bytes / bytesOfCall }

    /// The operations that a call of a function carries out.
    static func operations(of function: String, _ arguments: [JSONValue.Member]) -> Int {
        if SyncRoutes.pushes.contains(function) {
            return arguments.first { $0.key == "ops" }.map { pushed($0.value) } ?? 0
        }
        return max(0, arguments.reduce(0) { $0 + ($1.value.items?.count ?? 0) } - freeEntries)
    }

    /// The entries of a push, whose list may come as a text. What cannot be read counts as a full push.
    static func pushed(_ operations: JSONValue) -> Int {
        if let items = operations.items { return items.count }
        guard let text = operations.text else { return 0 }
        return (try? JSONValue.read(text))?.items?.count ?? SyncRoutes.mostOperations
    }
}
