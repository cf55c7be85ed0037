import MillraceWorker

struct SendReceipt: Job {
    static let kind = "receipt.send"
    var order: Int
}

let worker = try CompleteWorker()
worker.handle(SendReceipt.self, queue: "receipts") { job, context in
    print("the receipt of order \(job.order), run \(context.attempt)")
    return .done
}
try await worker.run()  // returns when drained after SIGTERM
