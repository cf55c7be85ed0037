import Faults
import Transfers

extension SendOutcome {
    /// Of a transfer that did not end: refused when nothing had left, unknown when the other side may have acted on it.
    static func failed(_ error: TransferError) -> SendOutcome {
        error.outcomeIsUnknown ? .unknown(Fault(transfer: error)) : .refused(Fault(transfer: error))
    }
}
