import Millrace

struct SendReceipt: Job {
    static let kind = "receipt.send"
    var order: Int
}

try await Client().migrate()  // the queue's schema, in the database of DATABASE_URL
let worker = Worker()
worker.handle(SendReceipt.self, queue: "receipts") { job, context in
    print("the receipt of order \(job.order), run \(context.attempt)")
    return .done
}
try await worker.run()  // returns when drained after SIGTERM
