/// The result of a redrive of dead jobs.
public struct Redriven: Sendable, Equatable {
    /// Jobs that wait again.
    public let retried: Int
    /// Jobs that were left dead, for another job holds their unique key.
    public let refused: Int
    /// Jobs that cannot run again, for their arguments are no longer kept.
    public let withoutArguments: Int
    /// The operation that has done it: `millrace operations undo` and ``Client/undo(_:)`` take it back.
    public let operation: Int64
}
