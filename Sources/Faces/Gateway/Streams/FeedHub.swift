import FoundationEssentials
import Listeners
package import Postgres
import Synchronization
package import Telemetry
import Threads

/// Gives the entries of the feed to all open streams of this process. It owns the one cursor that reads the feed, the last entries, and
/// the list of readers.
package actor FeedHub {
    package struct Options: Sendable {
        /// Entries of the last minute that are held for clients that come back, and their bytes.
        package var kept = 8192
        package var keptBytes = 16 << 20
        /// Open streams and long polls: in all, and of one person.
        package var streams = 12_000
        package var perPerson = 32
        /// The pause between looks at the clock. A heart-beat goes to each stream at each fifteenth.
        package var tick = Duration.seconds(1)
        /// Between two looks at the feed while entries come.
        package var pause = Duration.milliseconds(25)

        package init() {}
    }

    struct Reader {
        let reader: any StreamReader
        let filter: FeedFilter
        /// It has everything up to here.
        var position: Int64
        let expires: Date
        /// Of a long poll.
        let until: ContinuousClock.Instant?
    }

    /// What becomes of a reader that wants to join at a position.
    enum Joined: Sendable {
        /// It gets every entry behind its position from now on, until `leave`.
        case joined(Int)
        /// It has to take these first, and is then at this position.
        case behind([FeedEntry], position: Int64)
        /// So far back only the database knows.
        case farBehind
    }

    let options: Options
    let connecting: ConnectionOptions
    let hearing: NotificationHub
    let store: FeedStore
    let log: Log
    /// Open streams and long polls, from their request on.
    nonisolated let seats: Seats
    /// Rung when there may be new entries, or somebody needs a look now.
    let bell = Wakeup()
    /// How often the database has taken back what was in the feed, as when a person is erased.
    private let takenBack = TakenBack()

    /// nil: it has not begun.
    private(set) var position: Int64?
    private var ring: FeedRing
    /// As far as the ring has followed `takenBack`, and as it was when the last look began.
    private var followed = 0
    private var followedByLook = 0
    private var index = FeedIndex()
    private var readers: [Int: Reader] = [:]
    private var nextReader = 0
    private var turn = 0
    private var looksBegun = 0
    private var looksDone = 0
    private var waiting: [(look: Int, continuation: CheckedContinuation<Bool, Never>)] = []
    /// Readers that were too slow, since the start.
    package private(set) var cut = 0
    private var isOver = false
    /// Topics that the database knows.
    private var knownTopics: Set<String> = []

    /// - Parameters:
    ///   - connecting: how the gateway's own login connects.
    ///   - hearing: the process's LISTEN connection.
    package init(
        _ database: GatewayDatabase, connecting: ConnectionOptions, hearing: NotificationHub,
        options: Options = Options(),
        log: Log
    ) {
        self.options = options
        self.connecting = connecting
        self.hearing = hearing
        self.log = log
        seats = Seats(inAll: options.streams, perName: options.perPerson)
        store = FeedStore(database: database)
        ring = FeedRing(from: 0, most: options.kept, mostBytes: options.keptBytes)
        hearing.heed(["millrace_feed"]) { [bell] news in
            if news != .ended { bell.fire() }
        }
        hearing.heed(["millrace_feed_taken"]) { [takenBack] news in
            // What was said before it began, nobody has heard.
            if news != .ended { takenBack.count.withLock { $0 += 1 } }
        }
    }

    /// Open streams and long polls that have caught up.
    package var streams: Int { readers.count }

    /// Until cancelled; then all streams end.
    package func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { [hearing] in await hearing.run() }
            group.addTask { [self, options] in
                while !Task.isCancelled {
                    try? await Task.sleep(for: options.tick)
                    await tick(.now, at: .now)
                }
            }
            await read()
            group.cancelAll()
        }
        isOver = true
        for reader in readers.values { reader.reader.end(.closing) }
        answerWaiting(upTo: .max, with: false)
    }
}

// For those who join.
extension FeedHub {
    /// Whether everything after this is at hand.
    func reachesBack(to start: Int64) -> Bool {
        dropWhatWasTakenBack()
        return start >= ring.start
    }

    /// From here on clients that come back ask the database, which has only what they may still see.
    private func dropWhatWasTakenBack(since known: Int? = nil) {
        let count = takenBack.count.withLock { $0 }
        guard count != known ?? followed, let position else { return }
        followed = count
        ring = FeedRing(from: position, most: options.kept, mostBytes: options.keptBytes)
    }

    /// The position of a reader that wants what happens from now on.
    func now() async throws(ErrorAnswer) -> Int64 {
        // While nobody reads, the cursor looks from time to time only.
        guard !isOver else { throw .awayFeed }
        if position == nil || readers.isEmpty {
            let look = looksBegun + 1
            let isThere = await withCheckedContinuation { continuation in
                waiting.append((look, continuation))
                bell.fire()
            }
            guard isThere else { throw .awayFeed }
        }
        guard let position else { throw .awayFeed }
        return position
    }

    func join(
        _ reader: any StreamReader, _ filter: FeedFilter, from start: Int64, expires: Date,
        until: ContinuousClock.Instant? = nil
    ) -> Joined {
        dropWhatWasTakenBack()
        guard let position, let missed = ring.entries(of: filter, after: start) else { return .farBehind }
        guard missed.isEmpty else { return .behind(missed, position: position) }
        nextReader += 1
        readers[nextReader] = Reader(
            reader: reader, filter: filter, position: max(start, position), expires: expires, until: until)
        index.add(nextReader, filter)
        // The cursor may be asleep for long, because nobody read.
        if readers.count == 1 { bell.fire() }
        return .joined(nextReader)
    }

    /// Returns up to where it has everything; nil when it was removed before.
    @discardableResult
    func leave(_ number: Int) -> Int64? {
        guard let reader = readers.removeValue(forKey: number) else { return nil }
        index.remove(number, reader.filter)
        return max(reader.position, position ?? 0)
    }

    /// Whether these are topics, as far as it is known.
    func knows(_ topics: [String]) -> Bool { knownTopics.isSuperset(of: topics) }

    func learn(_ topics: [String]) {
        knownTopics.formUnion(topics)
    }
}

// For the cursor.
extension FeedHub {
    var hasReaders: Bool { !readers.isEmpty }

    /// Begins, or begins again, at a position.
    /// - Parameter resets: the database has gone back: it has fewer entries than were read. Readers get what comes from there on.
    func begin(at start: Int64, resets: Bool) {
        position = start
        followed = takenBack.count.withLock { $0 }
        ring = FeedRing(from: start, most: options.kept, mostBytes: options.keptBytes)
        guard resets else { return }
        for (number, reader) in readers {
            leave(number)
            reader.reader.end(.closing)
        }
    }

    func lookBegins() -> Int {
        dropWhatWasTakenBack()
        followedByLook = followed
        looksBegun += 1
        return looksBegun
    }

    func lookEnded(_ look: Int) {
        looksDone = look
        answerWaiting(upTo: look, with: true)
    }

    func answerWaiting(upTo look: Int, with answer: Bool) {
        let held = waiting
        waiting = held.filter { $0.look > look }
        for one in held where one.look <= look { one.continuation.resume(returning: answer) }
    }

    /// Gives each entry to its readers.
    func spread(_ entries: [FeedEntry]) {
        let now = ContinuousClock.now
        for entry in entries {
            ring.append(entry, at: now)
            for number in index.readers(of: entry) { give(entry, to: number) }
        }
        if let last = entries.last { position = last.seq }
        // It may have been taken back while it was read.
        dropWhatWasTakenBack(since: followedByLook)
    }

    private func give(_ entry: FeedEntry, to number: Int) {
        guard let reader = readers[number], reader.position < entry.seq, reader.filter.takes(entry) else { return }
        if reader.reader.take(entry.piece) {
            readers[number]?.position = entry.seq
        } else {
            drop(number)
        }
    }

    private func drop(_ number: Int) {
        guard let reader = readers[number] else { return }
        leave(number)
        cut += 1
        reader.reader.end(.cut)
    }

    /// Heart-beats for a fifteenth of the readers, and the ends whose time has come.
    func tick(_ time: Date, at instant: ContinuousClock.Instant) {
        // Behind a pooler nobody hears what is taken back.
        ring.forget(at: instant, span: hearing.isOpen ? FeedRing.span : .seconds(1))
        turn = (turn + 1) % 15
        for (number, reader) in readers {
            if reader.expires <= time {
                leave(number)
                reader.reader.end(.expired)
            } else if let until = reader.until {
                // It leaves by itself.
                if until <= instant { reader.reader.end(.waited) }
            } else if number % 15 == turn, !reader.reader.beat() {
                drop(number)
            }
        }
    }
}

private final class TakenBack: Sendable {
    let count = Mutex(0)
}

extension ErrorAnswer {
    static let awayFeed = ErrorAnswer(
        .unavailable, "the database does not answer", hint: "try again in some seconds",
        headers: [Header("Retry-After", "2")])
}
