import Hummingbird
import Logging
import Shop

@main
enum Main {
    static func main() async throws {
        let logger = Logger(label: "shop")
        let shop = try Shop(logger: logger)
        try await shop.prepare()
        let application = shop.application(port: 8080) { receipt in
            logger.info("sending the receipt", metadata: ["order": "\(receipt.order)"])
        }
        try await application.runService()
    }
}
