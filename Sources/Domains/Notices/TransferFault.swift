import Faults
import Transfers

extension NoticeOutcome {
    /// Of a transfer that did not end: nobody knows what came of it once all may have left.
    static func broken(_ error: TransferError) -> NoticeOutcome {
        let fault = Fault(transfer: error)
        return error.outcomeIsUnknown ? .unknown(fault) : .failed(fault)
    }
}
