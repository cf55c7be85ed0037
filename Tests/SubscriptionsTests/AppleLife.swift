import JSON
import TestSupport

/// One subscription in Apple's App Store, as Apple tells of it: what happens to it, the notifications, and what its customer has a right to.
/// Hours count from the first day; Apple speaks at once.
struct AppleLife {
    enum Product: String, CaseIterable {
        case plusMonthly = "plus.month"
        case plusYearly = "plus.year"
        case lightMonthly = "light.month"
        case proMonthly = "pro.month"
        case proYearly = "pro.year"

        var plan: String { String(rawValue.prefix { $0 != "." }) }
        /// The higher one is an upgrade. Two of Apple's levels may hold several products each.
        var level: Int { self == .proMonthly || self == .proYearly ? 2 : 1 }
        var hours: Int { rawValue.hasSuffix("year") ? 365 * 24 : 30 * 24 }
    }

    struct Transaction: Equatable {
        var number: Int
        var product: Product
        var bought: Int
        var ends: Int
        var isTrial = false
        var isUpgraded = false
        var revoked: Int?
    }

    enum State: Equatable {
        /// → any
        case paid
        /// Apple tries to take the money and lets the customer in meanwhile. → paid, retrying, revoked
        case grace(until: Int)
        /// Apple tries to take the money. → paid, ended
        case retrying(until: Int)
        /// → paid
        case ended
        /// → paid
        case revoked
    }

    private(set) var state = State.ended
    private(set) var transactions: [Transaction] = []
    private(set) var notifications: [JSONValue] = []
    private var now = 0
    private var renews = true
    /// What it renews as.
    private var next = Product.plusMonthly
    private var random: SeededRandom
    private let end: Int

    /// A life until `end`.
    init(seed: Int, end: Int) {
        random = SeededRandom(seed)
        self.end = end
        buy(anyProduct(), isTrial: random.below(4) == 0)
        tell("SUBSCRIBED", "INITIAL_BUY")
        while now < end { live() }
    }

    /// The state and the plan at a moment after which nothing is known yet.
    func truth(at moment: Int) -> String {
        let begun = transactions.last { $0.bought <= moment } ?? transactions[0]
        switch state {
        case .paid:
            let isTrial = last.isTrial && renews
            return (renews ? isTrial ? "trial" : "active" : "cancelled") + " \(begun.product.plan)"
        case .grace: return "grace \(begun.product.plan)"
        case .retrying, .ended: return "expired free"
        case .revoked: return "revoked free"
        }
    }

    private mutating func anyProduct() -> Product { Product.allCases[random.below(Product.allCases.count)] }

    private var last: Transaction { transactions[transactions.count - 1] }

    private mutating func live() {
        let pause = 1 + random.below(24 * 12)
        switch state {
        case .paid:
            // A renewal may be made and told on the day before.
            let due = last.ends - (renews ? random.below(24) : 0)
            if now + pause < due { return wait(pause) { $0.choose() } }
            wait(max(0, due - now)) { $0.comeToTheEnd() }
        case .grace(let until):
            if now + pause < until { return wait(pause) { $0.pay(from: $0.last.ends) } }
            wait(max(0, until - now)) {
                $0.state = .retrying(until: $0.last.ends + 60 * 24)
                $0.tell("GRACE_PERIOD_EXPIRED")
            }
        case .retrying(let until):
            if now + pause < until { return wait(pause) { if $0.random.below(3) == 0 { $0.pay(from: $0.now) } } }
            wait(max(0, until - now)) {
                $0.state = .ended
                $0.renews = false
                $0.tell("EXPIRED", "BILLING_RETRY")
            }
        case .ended:
            wait(pause) {
                $0.buy($0.anyProduct(), isTrial: false)
                $0.tell("SUBSCRIBED", "RESUBSCRIBE")
            }
        case .revoked: wait(pause) { $0.comeBack() }
        }
    }

    /// Nothing happens after the end.
    private mutating func wait(_ hours: Int, then act: (inout AppleLife) -> Void) {
        now += hours
        if now < end { act(&self) } else { now = end }
    }

    private mutating func choose() {
        switch random.below(12) {
        case 0...3: change(to: anyProduct())
        case 4, 5:
            renews.toggle()
            tell("DID_CHANGE_RENEWAL_STATUS", renews ? "AUTO_RENEW_ENABLED" : "AUTO_RENEW_DISABLED")
        case 6: revoke("REFUND")
        case 7: revoke("REVOKE")  // the family does not share it any more
        case 8 where transactions.count > 1:
            // Of an earlier period: it says nothing of this one.
            let index = random.below(transactions.count - 1)
            guard transactions[index].revoked == nil else { return }
            transactions[index].revoked = now
            tell("REFUND", about: transactions[index])
        case 9:
            transactions[transactions.count - 1].ends += 24 * (1 + random.below(20))
            tell("RENEWAL_EXTENDED")
        default: break
        }
    }

    /// Up, or across for the same time, is at once and takes the place of what was bought; down, or across for another time, is at the end.
    private mutating func change(to product: Product) {
        let current = last.product
        guard last.bought < now else { return }
        if product == current {
            guard next != current else { return }
            next = current
            tell("DID_CHANGE_RENEWAL_PREF")
        } else if product.level > current.level || product.level == current.level && product.hours == current.hours {
            transactions[transactions.count - 1].isUpgraded = true
            buy(product, isTrial: false)
            tell("DID_CHANGE_RENEWAL_PREF", "UPGRADE")
        } else {
            next = product
            tell("DID_CHANGE_RENEWAL_PREF", "DOWNGRADE")
        }
    }

    private mutating func revoke(_ type: String) {
        guard last.bought <= now else { return }
        transactions[transactions.count - 1].revoked = now
        state = .revoked
        renews = false
        tell(type)
    }

    private mutating func comeBack() {
        if now < last.ends, random.below(2) == 0 {
            transactions[transactions.count - 1].revoked = nil
            state = .paid
            renews = random.below(2) == 0
            tell("REFUND_REVERSED")
        } else {
            buy(anyProduct(), isTrial: false)
            tell("SUBSCRIBED", "RESUBSCRIBE")
        }
    }

    private mutating func comeToTheEnd() {
        guard renews else {
            now = max(now, last.ends)
            state = .ended
            return tell("EXPIRED", "VOLUNTARY")
        }
        if random.below(4) > 0 {
            let begins = last.ends
            buy(next, isTrial: false, from: begins)
            return tell("DID_RENEW")
        }
        now = max(now, last.ends)
        guard now < end else { return }
        if random.below(2) == 0 {
            state = .grace(until: last.ends + 16 * 24)
            tell("DID_FAIL_TO_RENEW", "GRACE_PERIOD")
        } else {
            state = .retrying(until: last.ends + 60 * 24)
            tell("DID_FAIL_TO_RENEW")
        }
    }

    private mutating func pay(from begins: Int) {
        buy(next, isTrial: false, from: begins)
        tell("DID_RENEW", "BILLING_RECOVERY")
    }

    private mutating func buy(_ product: Product, isTrial: Bool, from begins: Int? = nil) {
        let begins = begins ?? now
        transactions.append(
            Transaction(
                number: transactions.count + 1, product: product, bought: begins,
                ends: begins + (isTrial ? 7 * 24 : product.hours), isTrial: isTrial))
        next = product
        renews = true
        state = .paid
    }

    private mutating func tell(_ type: String, _ subtype: String? = nil, about transaction: Transaction? = nil) {
        let one = transaction ?? last
        let status =
            switch state {
            case .paid: 1
            case .ended: 2
            case .retrying: 3
            case .grace: 4
            case .revoked: 5
            }
        var told: [JSONValue.Member] = [
            .init(key: "transactionId", value: .string("t\(one.number)")),
            .init(key: "originalTransactionId", value: "REF"),
            .init(key: "productId", value: .string(one.product.rawValue)),
            .init(key: "appAccountToken", value: "PERSON"),
            .init(key: "purchaseDate", value: .int(Self.milliseconds(one.bought))),
            .init(key: "expiresDate", value: .int(Self.milliseconds(one.ends))),
        ]
        if one.isUpgraded { told.append(.init(key: "isUpgraded", value: true)) }
        if one.isTrial { told.append(.init(key: "offerDiscountType", value: "FREE_TRIAL")) }
        if let revoked = one.revoked {
            told.append(.init(key: "revocationDate", value: .int(Self.milliseconds(revoked))))
        }
        var renewal: [JSONValue.Member] = [
            .init(key: "autoRenewStatus", value: .int(renews ? 1 : 0)),
            .init(key: "autoRenewProductId", value: .string(next.rawValue)),
        ]
        if case .grace(let until) = state {
            renewal.append(.init(key: "gracePeriodExpiresDate", value: .int(Self.milliseconds(until))))
        }
        notifications.append([
            "notificationUUID": .string("REF-\(notifications.count + 1)"), "notificationType": .string(type),
            "subtype": JSONValue(subtype),
            // Each a second later, so that none is told in the same moment as another.
            "signedDate": .int(Self.milliseconds(now) + 1000 * notifications.count),
            "data": ["status": .int(status), "transaction": .object(told), "renewal": .object(renewal)],
        ])
    }

    private static func milliseconds(_ hours: Int) -> Int { (StoreLifeTests.firstDay + hours * 3600) * 1000 }
}
