import Hummingbird
import Logging
import Millrace
import Shop

@main
enum Main {
    static func main() async throws {
        let logger = Logger(label: "shop")
        let shop = try Shop(logger: logger)
        try await shop.prepare()
        let send = { @Sendable (receipt: SendReceipt) async throws in
            logger.info("sending the receipt", metadata: ["order": "\(receipt.order)"])
        }
        // A build that is rehearsed has no network, and its port may be another's.
        guard !Worker.isRehearsed else {
            try await shop.worker(send: send).run()
            return
        }
        try await shop.application(port: 8080, send: send).runService()
    }
}
