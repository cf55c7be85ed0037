import Synchronization

/// One transfer on its way to a loop, and through it.
final class Transfer: Sendable {
    let plan: TransferPlan
    let upload: Upload?
    /// Ends all of it, waiting included.
    let deadline: ContinuousClock.Instant
    private let givenUp = Atomic(false)
    private let census: Census

    init(_ plan: TransferPlan, upload: Upload?, deadline: ContinuousClock.Instant, in census: Census) {
        self.plan = plan
        self.upload = upload
        self.deadline = deadline
        self.census = census
        census.transfers.add(1, ordering: .relaxed)
    }

    deinit { census.transfers.subtract(1, ordering: .releasing) }

    /// Also before it has reached the loop: that looks here when it starts one.
    var isGivenUp: Bool { givenUp.load(ordering: .acquiring) }
    func giveUp() { givenUp.store(true, ordering: .releasing) }
}

/// The receiver of a transfer's end, and of its parts before that.
enum TransferReceiver: Sendable {
    case whole(CheckedContinuation<Result<HTTPResponse, TransferError>, Never>)
    case pieces(Download)

    func fail(_ error: TransferError) {
        switch self {
        case .whole(let continuation): continuation.resume(returning: .failure(error))
        case .pieces(let download): download.end(.failure(error))
        }
    }
}
