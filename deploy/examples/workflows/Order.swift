import Millrace

/// A card is charged, goods are reserved and shipped. If that fails for good, what was done is undone, the last step first.
struct PlaceOrder: Workflow {
    static let kind = "order.place"
    struct Result: Codable {
        var parcel: String
    }
    var number: Int
    var item: String
}

func handleOrders(_ worker: Worker) {
    worker.handle(workflow: PlaceOrder.self) { order, context in
        try await context.step("pay", undo: { (id: String) in print("  order \(order.number): \(id) is paid back") }) {
            print("  order \(order.number): the card is charged")
            return "payment-\(order.number)"  // which a real provider makes once for each key
        }
        try await context.step("reserve", undo: { print("  order \(order.number): \($0) is back on its shelf") }) {
            order.item
        }
        if order.item == "unicorn" { throw Discarded("no carrier takes a unicorn") }
        // The warehouse says so, in minutes or days.
        let parcel = try await context.signal("packed", as: String.self, timeout: .seconds(3 * 86_400))
        guard let parcel else { throw Discarded("it was not packed in three days") }
        return PlaceOrder.Result(parcel: parcel)
    }
}

func order(_ place: Workplace) async throws {
    let lamp = try await place.millrace.start(PlaceOrder(number: 7, item: "lamp"), id: "order-7")
    try await lamp.signal("packed", "parcel-81")
    let unicorn = try await place.millrace.start(PlaceOrder(number: 8, item: "unicorn"), id: "order-8")
    try await place.finish([lamp.job, unicorn.job])
    print("order 7 is in \(try await lamp.result().parcel)")
    print("order 8 is \(try await unicorn.status()?.state.rawValue ?? "gone")")
}
