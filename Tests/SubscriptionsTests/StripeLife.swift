import JSON
import TestSupport

/// One subscription at Stripe, as Stripe tells of it. Hours count from the first day; Stripe speaks at once.
struct StripeLife {
    enum State: Equatable {
        /// The first payment is open. → active, over
        case incomplete
        /// → active, over
        case trialing
        /// → pastDue, over
        case active
        /// → active, unpaid, over
        case pastDue(since: Int)
        /// Stripe has given up to collect, and keeps it. → active, over
        case unpaid
        case over
    }

    /// Prices by the plan that they are a product of; the last is none's.
    static let prices = ["price_light", "price_plus", "price_pro", "price_support"]

    private(set) var state: State
    private(set) var events: [JSONValue] = []
    private var items: [String]
    private var now = 0
    private var periodEnd: Int
    private var endsWithPeriod = false
    private var random: SeededRandom
    private let end: Int

    init(seed: Int, end: Int) {
        random = SeededRandom(seed)
        self.end = end
        let first = random.below(3)
        state = [.incomplete, .trialing, .active][first]
        periodEnd = (first == 1 ? 14 : 30) * 24
        items = [Self.prices[random.below(4)]]
        tell("created")
        while now < end, state != .over { live() }
    }

    /// - Parameter grace: hours for which a plan counts though it is not paid.
    func truth(at moment: Int, grace: Int) -> String {
        let ranks = ["price_light": 1, "price_plus": 2, "price_pro": 3]
        let best = items.compactMap { ranks[$0] }.max().map { ["light", "plus", "pro"][$0 - 1] } ?? "free"
        switch state {
        case .incomplete: return "incomplete free"
        case .trialing: return (endsWithPeriod ? "cancelled " : "trial ") + best
        case .active: return (endsWithPeriod ? "cancelled " : "active ") + best
        case .pastDue(let since): return moment < since + grace ? "grace \(best)" : "expired free"
        case .unpaid, .over: return "expired free"
        }
    }

    private mutating func live() {
        now += 1 + random.below(24 * 9)
        if now >= periodEnd, state != .incomplete { now = periodEnd }
        guard now < end else {
            now = end
            return
        }
        switch state {
        case .incomplete: random.below(3) > 0 ? become(.active) : become(.over)
        case .trialing, .active: now == periodEnd ? comeToTheEnd() : choose()
        case .pastDue:
            if now == periodEnd { periodEnd += 30 * 24 }
            switch random.below(4) {
            case 0: become(.unpaid)
            case 1: become(.over)
            case 2: become(.active)
            default: tell("updated")  // another try has failed
            }
        case .unpaid:
            if now == periodEnd { periodEnd += 30 * 24 }
            random.below(2) == 0 ? become(.active) : become(.over)
        case .over: break
        }
    }

    private mutating func become(_ next: State) {
        if next == .active, state == .incomplete { periodEnd = now + 30 * 24 }
        state = next
        tell(next == .over ? "deleted" : "updated")
    }

    private mutating func comeToTheEnd() {
        if endsWithPeriod { return become(.over) }
        periodEnd += 30 * 24
        if random.below(4) == 0 { return become(.pastDue(since: now)) }
        become(.active)
    }

    private mutating func choose() {
        switch random.below(9) {
        case 0, 1: items[random.below(items.count)] = Self.prices[random.below(4)]
        case 2, 3: items.append(Self.prices[random.below(4)])
        case 4:
            guard items.count > 1 else { return }
            items.remove(at: random.below(items.count))
        case 5: endsWithPeriod.toggle()
        case 6:
            // A refund gives money back, and ends nothing.
            events.append([
                "id": .string("evt-REF-\(events.count + 1)"), "type": "charge.refunded", "created": .int(second),
                "data": ["object": ["object": "charge", "id": "ch_1"]],
            ])
            return
        case 7 where random.below(4) == 0: return become(.over)
        default: return
        }
        items.shuffle(using: &random)
        tell("updated")
    }

    private var second: Int { StoreLifeTests.firstDay + now * 3600 + events.count }

    private mutating func tell(_ type: String) {
        let status =
            switch state {
            case .incomplete: "incomplete"
            case .trialing: "trialing"
            case .active: "active"
            case .pastDue: "past_due"
            case .unpaid: "unpaid"
            case .over: "canceled"
            }
        let ends = JSONValue.int(StoreLifeTests.firstDay + periodEnd * 3600)
        let told: [JSONValue] = items.enumerated().map { index, price in
            // A plan's product may be named by its price, the price's key, or the product.
            switch index % 3 {
            case 0: ["price": ["id": .string(price), "product": "prod_x"], "current_period_end": ends]
            case 1: ["price": ["id": "price_1", "lookup_key": .string(price)], "current_period_end": ends]
            default: ["price": ["id": "price_2", "product": .string(price)], "current_period_end": ends]
            }
        }
        let object: JSONValue = [
            "id": "REF", "object": "subscription", "status": .string(status),
            "metadata": ["millrace_person": "PERSON"], "items": ["data": .array(told)],
            "cancel_at_period_end": .bool(endsWithPeriod),
        ]
        events.append([
            "id": .string("evt-REF-\(events.count + 1)"), "type": .string("customer.subscription.\(type)"),
            "created": .int(second), "data": ["object": object],
        ])
    }
}
