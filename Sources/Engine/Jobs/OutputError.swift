/// Why a value was not published, or a state not kept.
public enum OutputError: JobFailure, Equatable, CustomStringConvertible {
    /// A key has 1 to 512 characters, and none of them is NUL.
    case malformedKey(characters: Int)
    /// The value takes more than 1 MiB of JSON.
    case tooLarge(bytes: Int)
    /// The value cannot be written as JSON.
    case unencodable(reason: String)
    /// The job's stream holds 10,000 values or 16 MiB, the maximum.
    case full
    /// Another run has the job, or will have it: nothing was written, and this run should stop.
    case leaseLost
    /// The database did not take the value.
    case refused(reason: String)

    /// An error that would come again is not retried.
    public var retry: Retry {
        switch self {
        case .malformedKey, .tooLarge, .unencodable, .full: .never
        case .leaseLost, .refused: .usual
        }
    }

    /// A sentence without the value: it may be private.
    public var description: String {
        switch self {
        case .malformedKey(let characters):
            "the key of a published value must have 1 to 512 characters and no NUL; this one has \(characters)"
        case .tooLarge(let bytes):
            "the value takes \(bytes) bytes, more than the \(StoredJSON.largest) (1 MiB) allowed: give a reference"
        case .unencodable(let reason): "the value cannot be written: \(reason)"
        case .full: "the job's stream is full: it holds 10,000 values or 16 MiB, the maximum"
        case .leaseLost: "the lease is lost: the value is not written, and this run is to stop"
        case .refused(let reason): "the value could not be written: \(reason)"
        }
    }
}
