package import Encryption
package import MillraceJobs
import MillraceQueues

extension Running {
    /// A job's arguments as its handler gets them: opened, whatever its kind says, for anybody with the key may seal a job's.
    func opened(_ job: Claimed, _ handler: Handler) throws(SealError) -> [UInt8] {
        let sealed = try SealedEnvelope(job.args) != nil
        guard !sealed else { return try shared.options.keys.open(job.args, kind: handler.kind) }
        if handler.refusesPlain { throw .plain(kind: handler.kind) }
        if handler.encrypted {
            shared.limitedLog.say("jobs of an encrypted kind came with plain arguments", about: handler.kind)
        }
        return job.args
    }
}

extension SealError: JobFailure {
    /// Another worker may have the key, or this one after its next start; plain arguments stay plain.
    package var retry: Retry {
        switch self {
        case .plain: .never
        case .unusableKeys, .noKey, .missingKey, .damaged, .malformed: .usual
        }
    }
}
