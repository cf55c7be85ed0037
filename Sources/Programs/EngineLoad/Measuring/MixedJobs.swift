import CommandKit
import FoundationEssentials

/// Jobs of mixed kinds, in tens: five plain, one scheduled, one that fails once, one with a limit key, and a unique key
/// whose holder is replaced. Pure.
struct MixedJobs: Sendable {
    enum Sort: String, Sendable, CaseIterable {
        case plain, scheduled, retried, limited, replaced
    }

    static let perTen = 10
    /// Nine are left when one has replaced another.
    static let endsPerTen = 9
    static let queue = "load.pinned"
    static let limitKey = "load.pinned"

    static func sort(of slot: Int) -> Sort {
        switch slot {
        case 5: .scheduled
        case 6: .retried
        case 7: .limited
        case 8, 9: .replaced
        default: .plain
        }
    }

    /// How many microseconds after its call a job is due.
    static func delay(_ sort: Sort) -> Int64 {
        switch sort {
        case .plain, .retried, .limited: 0
        case .scheduled: 2_000_000
        case .replaced: 200_000
        }
    }

    /// Whether practice.mark reports the job's start: the replaced job never starts, and practice.fail leaves no mark.
    static func marks(_ slot: Int) -> Bool { slot != 6 && slot != 8 }

    /// The keys repeat every two thousand tens.
    static func key(_ ten: Int) -> String { "load.pinned.\(ten % 2000)" }

    /// For millrace.enqueue_many.
    /// - Parameter microseconds: when the call was meant to be, since 1970 on the database's clock.
    static func json(tens: Range<Int>, microseconds: Int64) -> String {
        "[\(tens.flatMap { jobs(ten: $0, microseconds: microseconds) }.joined(separator: ", "))]"
    }

    private static func jobs(ten: Int, microseconds: Int64) -> [String] {
        (0..<perTen).map { slot in
            let sort = sort(of: slot)
            let n = "\"args\": {\"n\": \(ten * perTen + slot)}"
            let due = "\"run_at\": \"\(instant(microseconds + delay(sort)))\""
            let fields =
                switch sort {
                case .plain: "\"kind\": \"practice.mark\", \(n)"
                case .scheduled: "\"kind\": \"practice.mark\", \(n), \(due)"
                case .retried:
                    "\"kind\": \"practice.fail\", \"args\": {\"times\": 1}, \"options\": {\"backoff\": {\"base\": 1, \"cap\": 1}}"
                case .limited: "\"kind\": \"practice.mark\", \(n), \"limit_key\": \"\(limitKey).\(ten % 32)\""
                case .replaced:
                    "\"kind\": \"practice.mark\", \(n), \(due), \"unique_key\": \"\(key(ten))\", \"on_conflict\": \"replace\""
                }
            return "{\(fields), \"queue\": \"\(queue)\"}"
        }
    }

    static func instant(_ microseconds: Int64) -> String {
        let seconds = Date(timeIntervalSince1970: Double(microseconds / 1_000_000)).formatted(.iso8601)
        let fraction = String(1_000_000 + microseconds % 1_000_000).dropFirst()
        return "\(seconds.dropLast()).\(fraction)Z"
    }
}
