import Foundation
import Hummingbird
import HummingbirdTesting
import Logging
import Millrace
import Shop
import Synchronization
import Testing

private final class Sent: Sendable {
    private let orders = Mutex<[Int]>([])
    var all: [Int] { orders.withLock { $0 } }
    func add(_ order: Int) { orders.withLock { $0.append(order) } }
}

/// With SHOP_URL, an empty database.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["SHOP_URL"] != nil)) struct ShopTests {
    private let database = Database.url(ProcessInfo.processInfo.environment["SHOP_URL"] ?? "")
    private let logger = Logger(label: "shop") { _ in SwiftLogNoOpLogHandler() }

    @Test
    func `an order is answered with its job, the worker beside the server does it once, and a shutdown lets it end`()
        async throws
    {
        let shop = try Shop(database: database, logger: logger)
        try await shop.prepare()
        let sent = Sent()
        let (began, begins) = AsyncStream.makeStream(of: Void.self)
        let application = shop.application(port: 0) { receipt in
            begins.yield()
            if receipt.order == 8 { try await Task.sleep(for: .seconds(2)) }
            sent.add(receipt.order)
        }
        let client = try Client(database: database)
        let last = try await application.test(.live) { server in
            func order(_ number: Int) async throws -> Int64 {
                try await server.execute(uri: "/orders/\(number)/receipt", method: .post) { response in
                    #expect(response.status == .accepted)
                    return try JSONDecoder().decode(Accepted.self, from: Data(String(buffer: response.body).utf8)).job
                }
            }
            let first = try await order(7)
            #expect(try await order(7) == first)
            #expect(try await client.wait(for: first).state == .succeeded)
            try await server.execute(uri: "/jobs/\(first)", method: .get) { response in
                #expect(String(buffer: response.body).contains("succeeded"))
            }
            try await server.execute(uri: "/jobs/4242", method: .get) { response in
                #expect(response.status == .notFound)
            }
            for await _ in began { break }
            let last = try await order(8)
            for await _ in began { break }
            return last  // it runs: the group is told to end now
        }
        #expect(try await client.job(last)?.state == .succeeded)
        #expect(sent.all == [7, 8])
        await client.close()
    }
}
