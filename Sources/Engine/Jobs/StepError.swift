/// Why a step was not done, or is not recorded.
public enum StepError: JobFailure, Equatable, CustomStringConvertible {
    /// A name has 1 to 128 characters, and none of them is NUL.
    case malformedName(String)
    /// The job already has 1,000 steps, the most there may be.
    case tooMany(name: String)
    /// The value takes more than 1 MiB of JSON. The step's work is done, but not recorded.
    case tooLarge(name: String, bytes: Int)
    /// The value cannot be written as JSON. The step's work is done, but not recorded.
    case unencodable(name: String, reason: String)
    /// The value that an earlier run recorded cannot be decoded as this type.
    case undecodable(name: String, reason: String)
    /// A step of this name is under way in the same run.
    case overlapping(name: String)
    /// Another run has the job, or will have it: nothing was recorded, and this run should stop.
    case leaseLost(name: String)
    /// The work is not done: handlers of chunks run no undos.
    case notUndoable(name: String)
    /// The database did not take the record.
    case refused(name: String, reason: String)

    /// An error that would come again is not retried.
    public var retry: Retry {
        switch self {
        case .malformedName, .tooMany, .tooLarge, .unencodable, .notUndoable: .never
        case .undecodable, .overlapping, .leaseLost, .refused: .usual
        }
    }

    /// A sentence without the value: it may be private.
    public var description: String {
        switch self {
        case .malformedName(let name):
            "the name of a step must have 1 to 128 characters and no NUL; this one has \(name.unicodeScalars.count)"
        case .tooMany(let name): "step \(name) would be one too many: a job has at most \(Context.mostSteps) steps"
        case .tooLarge(let name, let bytes):
            "the value of step \(name) takes \(bytes) bytes, more than the \(StoredJSON.largest) (1 MiB) kept: record a reference"
        case .unencodable(let name, let reason): "the value of step \(name) cannot be recorded: \(reason)"
        case .undecodable(let name, let reason): "the value on record for step \(name) does not fit: \(reason)"
        case .overlapping(let name): "step \(name) is already under way in this run: each step needs its own name"
        case .leaseLost(let name): "the lease is lost: step \(name) is not recorded, and this run is to stop"
        case .notUndoable(let name):
            "step \(name) cannot be undone later, so it is not done: its handler takes chunks, and undos run in handlers of one job"
        case .refused(let name, let reason): "step \(name) could not be recorded: \(reason)"
        }
    }
}

/// Why a result cannot be kept.
public enum ResultError: JobFailure, Equatable, CustomStringConvertible {
    /// It takes more than 1 MiB of JSON.
    case tooLarge(bytes: Int)
    /// It cannot be written as JSON.
    case unencodable(reason: String)

    /// It would be the same next time.
    public var retry: Retry { .never }

    /// A sentence without the value: it may be private.
    public var description: String {
        switch self {
        case .tooLarge(let bytes):
            "the result takes \(bytes) bytes, more than the \(StoredJSON.largest) (1 MiB) kept: give a reference"
        case .unencodable(let reason): "the result cannot be kept: \(reason)"
        }
    }
}
