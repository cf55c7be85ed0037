import Supervision
import TestSupport
import Testing

@Suite struct BucketPropertyTests {
    @Test func `workers that share a pace keep to it together, in any second, whenever calls come`() async {
        for seed in 0..<sequences {
            if seed.isMultiple(of: 16) { await Task.yield() }  // other tests want the thread, too
            var random = SeededRandom(seed)
            let callers = 1 + random.below(6)
            let rate = Double(1 + random.below(50))
            let skew = Int64(random.below(1_000_000_000))
            var buckets = (0..<callers).map { rank -> Bucket in
                var bucket = Bucket()
                bucket.learn(rate: rate)
                bucket.dealt(.init(rank: rank, callers: callers), ahead: skew)
                return bucket
            }
            var now = Moment.start
            var went: [Int64] = []
            for _ in 0..<30 {
                let one = random.below(callers)
                if random.below(8) == 0 { now = now.after(random.below(1000)) }
                let at = buckets[one].take(at: now)
                guard at >= now else {
                    Issue.record("sequence \(seed): a call went \(now - at) before it came")
                    return
                }
                if random.below(10) == 0 { buckets[one].giveBack(at) } else { went.append(at.nanoseconds) }
            }
            // Each may use up the cell it is in: one more than its share, and no more, in any second.
            went.sort()
            var first = 0
            for last in went.indices {
                while went[last] - went[first] >= 1_000_000_000 { first += 1 }
                guard Double(last - first + 1) <= rate * Bucket.caution + Double(2 * callers) else {
                    Issue.record("sequence \(seed): \(last - first + 1) in a second, of \(rate), \(callers) callers")
                    return
                }
            }
        }
    }

    @Test func `what all ask for all the time goes out evenly, and all of it is used`() {
        for callers in 1...6 {
            var buckets = (0..<callers).map { rank -> Bucket in
                var bucket = Bucket()
                bucket.learn(rate: 10)
                bucket.dealt(.init(rank: rank, callers: callers), ahead: 0)
                return bucket
            }
            var went: [Int64] = []
            for index in buckets.indices {
                var now = Moment.start
                for _ in 0..<60 {
                    now = buckets[index].take(at: now)
                    went.append(now.nanoseconds)
                }
            }
            went.sort()
            let steady = went.dropFirst(2 * callers).dropLast(2 * callers)
            for (one, next) in zip(steady, steady.dropFirst()) {
                #expect(abs(Double(next - one) / 1e9 - 0.1 / Bucket.caution) < 0.001)
            }
        }
    }

    @Test func `a bucket never goes before a pause is over, and never forgets its pace`() async {
        for seed in 0..<sequences {
            if seed.isMultiple(of: 16) { await Task.yield() }  // other tests want the thread, too
            var random = SeededRandom(seed &+ 7_000_000)
            var bucket = Bucket(cap: random.below(3) == 0 ? Double(1 + random.below(20)) : nil)
            var now = Moment.start
            var last: Moment?
            for _ in 0..<40 {
                switch random.below(8) {
                case 0: bucket.learn(rate: random.below(4) == 0 ? nil : Double(1 + random.below(20)))
                case 1:
                    let callers = 1 + random.below(5)
                    bucket.dealt(
                        .init(rank: random.below(callers), callers: callers), ahead: Int64(random.below(1 << 30)))
                    last = nil
                case 2:
                    let shared = bucket.throttled(
                        wait: random.below(2) == 0 ? nil : .milliseconds(random.below(3000)), at: now)
                    #expect((shared == nil) == (bucket.rate != nil))
                case 3: bucket.served()
                case 4: now = now.after(random.below(2000))
                default:
                    let peeked = bucket.peek(at: now)
                    let at = bucket.take(at: now)
                    guard peeked == at, at >= now, at >= bucket.blocked else {
                        Issue.record("sequence \(seed): \(at) for \(now), blocked until \(bucket.blocked)")
                        return
                    }
                    if let last, let interval = bucket.interval, at.nanoseconds - last.nanoseconds < interval / 2 - 1 {
                        Issue.record("sequence \(seed): two calls within half an interval")
                        return
                    }
                    last = bucket.rate == nil ? nil : at
                }
                if case 0 = random.below(8) { last = nil }
            }
        }
    }
}
