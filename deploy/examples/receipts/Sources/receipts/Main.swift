import Millrace
import ReceiptJobs

/// `receipts enqueue 7` asks for a receipt in a second; `receipts` alone runs the worker. Both find the database in DATABASE_URL.
@main
enum Main {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "enqueue", let order = arguments.dropFirst().first.flatMap({ Int($0) }) {
            let millrace = try Client(database: .environment)
            let id = try await millrace.enqueue(
                SendReceipt(order: order), in: .seconds(1), unique: "receipt-\(order)")
            print("job \(id)")
            await millrace.close()
            return
        }
        let worker = Worker(database: .environment, slots: 20)
        register(on: worker) { order in print("sending the receipt for order \(order)") }
        try await worker.run()
    }
}
