import CLinux
import CommandKit
import Glibc
import Synchronization
import Telemetry
import Threads
import Workers

/// Many clients with a stream each: on a few threads with epoll, and with a parser of their own. A client whose connection ends comes back
/// with the id of its last event.
final class StreamFleet: Sendable {
    /// What one client has seen.
    struct Seen: Sendable {
        var person = 0
        /// The position of its first answer; nil: it never had one.
        var start: Int64?
        var seqs: [Int64] = []
    }

    struct Counts: Sendable {
        var ready = 0
        var events = 0
        var connects = 0
        var refused = 0
        var resets = 0
        var ended = 0
        var isOver = false
    }

    struct Results: Sendable {
        var seen: [Seen] = []
        /// From the call that committed an event to its arrival, of the calm part.
        var calm = Histogram()
        var all = Histogram()
        /// The same for each minute of the events' times.
        var minutes: [Int64: Histogram] = [:]
    }

    private let port: UInt16
    private let token: @Sendable (Int) -> String
    private let time: @Sendable (UnsafeBufferPointer<UInt8>) -> Int64?
    private let counters = Mutex<[Counts]>([])
    private let results = Mutex(Results())
    private let isOver = Atomic(false)
    /// Events committed later are not of the calm part; as `PracticeMarks.now()`.
    private let calmUntil = Atomic(Int64.max)

    /// - Parameters:
    ///   - token: what client n shows.
    ///   - time: when an event was called for, from its data; as `PracticeMarks.now()`.
    init(
        port: UInt16, time: @escaping @Sendable (UnsafeBufferPointer<UInt8>) -> Int64? = StreamLoop.stampedTime,
        token: @escaping @Sendable (Int) -> String
    ) {
        self.port = port
        self.time = time
        self.token = token
    }

    var counts: Counts {
        counters.withLock { all in
            all.reduce(into: Counts(isOver: true)) { sum, one in
                sum.ready += one.ready
                sum.events += one.events
                sum.connects += one.connects
                sum.refused += one.refused
                sum.resets += one.resets
                sum.ended += one.ended
                sum.isOver = sum.isOver && one.isOver
            }
        }
    }

    func start(_ clients: Int, threads: Int) {
        counters.withLock { $0 = Array(repeating: Counts(), count: threads) }
        for thread in 0..<threads {
            let people = Array(stride(from: thread, to: clients, by: threads))
            Thread.start(name: "streams-\(thread)") { [self] in
                var loop = StreamLoop(port: port, people: people, time: time, token: token)
                while !isOver.load(ordering: .relaxed) {
                    loop.turn(calmUntil: calmUntil.load(ordering: .relaxed))
                    let counts = loop.counts
                    counters.withLock { $0[thread] = counts }
                }
                loop.close()
                let (seen, calm, all, minutes) = (loop.seen, loop.calm, loop.all, loop.minutes)
                results.withLock { results in
                    results.seen += seen
                    results.calm.merge(calm)
                    results.all.merge(all)
                    for (minute, histogram) in minutes {
                        results.minutes[minute, default: Histogram()].merge(histogram)
                    }
                }
                counters.withLock { $0[thread].isOver = true }
            }
        }
    }

    /// Waits until this number of streams is open.
    func opened(_ streams: Int, _ live: LiveRegion, within limit: Duration) async throws {
        let deadline = ContinuousClock.now + limit
        while counts.ready < streams {
            let counts = counts
            guard ContinuousClock.now < deadline else {
                throw Failure(
                    "only \(counts.ready) of \(streams) streams are open after \(Humane.duration(limit)); \(counts.refused) were refused, \(counts.ended) ended"
                )
            }
            live.update(["\(Humane.count(counts.ready)) of \(Humane.count(streams)) streams are open"])
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    func endCalm() { calmUntil.store(PracticeMarks.now(), ordering: .relaxed) }

    func stop() async throws -> Results {
        isOver.store(true, ordering: .relaxed)
        while !counts.isOver { try await Task.sleep(for: .milliseconds(20)) }
        return results.withLock { $0 }
    }
}

/// The clients of one thread.
private struct StreamLoop {
    private enum State {
        case away(since: Int64)
        case connecting
        case waiting
        case ready
    }

    private struct Client {
        var state = State.away(since: 0)
        var descriptor: Int32 = -1
        var raw: [UInt8] = []
        var text: [UInt8] = []
        var hasHead = false
        var last: Int64?
    }

    let port: UInt16
    let token: @Sendable (Int) -> String
    private(set) var seen: [StreamFleet.Seen]
    private(set) var counts = StreamFleet.Counts()
    private(set) var calm = Histogram()
    private(set) var all = Histogram()
    private(set) var minutes: [Int64: Histogram] = [:]
    private let time: @Sendable (UnsafeBufferPointer<UInt8>) -> Int64?
    private var clients: [Client]
    private var byDescriptor: [Int32: Int] = [:]
    private let epoll = millrace_epoll()
    private var opening = 0
    private var away: [Int]
    private var calmUntil = Int64.max
    private var space = [UInt8](repeating: 0, count: 65_536)
    /// The most that wait for their head at once.
    private static let mostOpening = 100

    init(
        port: UInt16, people: [Int], time: @escaping @Sendable (UnsafeBufferPointer<UInt8>) -> Int64?,
        token: @escaping @Sendable (Int) -> String
    ) {
        self.port = port
        self.time = time
        self.token = token
        seen = people.map { StreamFleet.Seen(person: $0) }
        clients = Array(repeating: Client(), count: people.count)
        away = Array(people.indices.reversed())
    }

    mutating func close() {
        for client in clients where client.descriptor >= 0 { Glibc.close(client.descriptor) }
        Glibc.close(epoll)
    }

    mutating func turn(calmUntil: Int64) {
        self.calmUntil = calmUntil
        var descriptors = [Int32](repeating: 0, count: 64)
        var events = [UInt32](repeating: 0, count: 64)
        let count = millrace_epoll_wait(epoll, &descriptors, &events, 10)
        for place in 0..<max(0, Int(count)) {
            guard let number = byDescriptor[descriptors[place]] else { continue }
            if case .connecting = clients[number].state { ask(number) } else { read(number) }
        }
        comeBack()
    }

    private mutating func comeBack() {
        guard opening < Self.mostOpening, !away.isEmpty else { return }
        let now = PracticeMarks.now()
        var later: [Int] = []
        while opening < Self.mostOpening, let number = away.popLast() {
            if case .away(let since) = clients[number].state, since <= now {
                connect(number)
            } else {
                later.append(number)
            }
        }
        away.insert(contentsOf: later, at: 0)
    }

    private mutating func connect(_ number: Int) {
        let descriptor = socket(
            AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return leave(number, pause: 1_000_000_000) }
        counts.connects += 1
        // From several addresses: one has ports for 28,000 connections only, and those that ended keep theirs for a minute.
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_IP), 24, &one, 4)  // IP_BIND_ADDRESS_NO_PORT
        var from = Self.address(host: 0x7f00_0002 + UInt32(seen[number].person % 8), port: 0)
        var to = Self.address(host: 0x7f00_0001, port: port)
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafePointer(to: &from) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) }
        }
        let outcome = withUnsafePointer(to: &to) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(descriptor, $0, size) }
        }
        clients[number].descriptor = descriptor
        guard outcome == 0 || errno == EINPROGRESS else { return leave(number, pause: 500_000_000) }
        clients[number].state = .connecting
        opening += 1
        byDescriptor[descriptor] = number
        _ = millrace_epoll_watch(epoll, descriptor, 4, 0)  // EPOLLOUT
    }

    private static func address(host: UInt32, port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = host.bigEndian
        return address
    }

    private mutating func ask(_ number: Int) {
        let resume = clients[number].last.map { "Last-Event-ID: \($0)\r\n" } ?? ""
        let request =
            "GET /v1/me/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
            + "Authorization: Bearer \(token(seen[number].person))\r\n\(resume)\r\n"
        let bytes = Array(request.utf8)
        clients[number].state = .waiting
        let descriptor = clients[number].descriptor
        guard send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else { return leave(number) }
        _ = millrace_epoll_watch(epoll, descriptor, 1, 1)  // EPOLLIN
    }

    /// Comes back after the pause that the stream asks for, more or less.
    private mutating func leave(_ number: Int, pause: Int64? = nil) {
        let descriptor = clients[number].descriptor
        if descriptor >= 0 {
            byDescriptor[descriptor] = nil
            Glibc.close(descriptor)
        }
        switch clients[number].state {
        case .connecting, .waiting: opening -= 1
        case .ready: counts.ready -= 1
        case .away: break
        }
        let last = clients[number].last
        clients[number] = Client(
            state: .away(since: PracticeMarks.now() + (pause ?? Int64.random(in: 200_000_000...2_000_000_000))))
        clients[number].last = last
        away.insert(number, at: 0)
    }

    private mutating func read(_ number: Int) {
        let descriptor = clients[number].descriptor
        while true {
            let count = recv(descriptor, &space, space.count, 0)
            guard count > 0 else {
                if count < 0, errno == EAGAIN { return }
                if case .ready = clients[number].state { counts.ended += 1 }
                return leave(number)
            }
            clients[number].raw += space[..<count]
            guard unpack(number) else { return leave(number) }
            take(number)
            if count < space.count { return }
        }
    }

    /// False: the answer has another status, or its chunks cannot be read.
    private mutating func unpack(_ number: Int) -> Bool {
        let raw = clients[number].raw
        clients[number].raw = []
        let taken = raw.withUnsafeBufferPointer { bytes -> Int? in
            var place = 0
            if !clients[number].hasHead {
                guard let end = bytes.place(of: "\r\n\r\n") else { return 0 }
                guard bytes.starts(with: "HTTP/1.1 200 ".utf8) else {
                    counts.refused += 1
                    return nil
                }
                place = end + 4
                clients[number].hasHead = true
            }
            while let end = bytes.place(of: "\r\n", from: place) {
                guard let size = Int(String(decoding: bytes[place..<end], as: UTF8.self), radix: 16), size > 0 else {
                    return nil
                }
                guard bytes.count >= end + size + 4 else { break }
                clients[number].text += bytes[end + 2..<end + 2 + size]
                place = end + size + 4
            }
            return place
        }
        guard let taken else { return false }
        clients[number].raw = Array(raw[taken...])
        return true
    }

    private mutating func take(_ number: Int) {
        let now = PracticeMarks.now()
        let text = clients[number].text
        clients[number].text = []
        let taken = text.withUnsafeBufferPointer { bytes in
            var place = 0
            while let end = bytes.place(of: "\n\n", from: place) {
                take(UnsafeBufferPointer(rebasing: bytes[place..<end]), of: number, at: now)
                place = end + 2
            }
            return place
        }
        // A comment has no event behind it.
        let rest = text[taken...]
        if !rest.elementsEqual(": alive\n".utf8) { clients[number].text = Array(rest) }
    }

    private mutating func take(_ block: UnsafeBufferPointer<UInt8>, of number: Int, at now: Int64) {
        var (isChange, isReady, id) = (false, false, Int64?.none)
        var data: UnsafeBufferPointer<UInt8>?
        var place = 0
        while place < block.count {
            let end = block.place(of: "\n", from: place) ?? block.count
            let line = block[place..<end]
            place = end + 1
            if line.starts(with: "id: ".utf8) {
                id = Int64(String(decoding: line.dropFirst(4), as: UTF8.self))
            } else if line.starts(with: "data: ".utf8) {
                data = UnsafeBufferPointer(rebasing: line.dropFirst(6))
            } else if line.starts(with: "event: ".utf8) {
                let name = line.dropFirst(7)
                isChange = name.elementsEqual("change".utf8)
                isReady = name.elementsEqual("ready".utf8)
                if name.elementsEqual("reset".utf8) { counts.resets += 1 }
            }
        }
        if let id { clients[number].last = id }
        if isReady {
            opening -= 1
            counts.ready += 1
            clients[number].state = .ready
            if seen[number].start == nil { seen[number].start = id }
        } else if isChange {
            counts.events += 1
            if let id { seen[number].seqs.append(id) }
            guard let data, let time = time(data) else { return }
            let took = UInt64(max(0, now - time))
            all.record(nanoseconds: took)
            minutes[time / 60_000_000_000, default: Histogram()].record(nanoseconds: took)
            if time < calmUntil { calm.record(nanoseconds: took) }
        }
    }

    /// What the data of an event says after `"t": `.
    @Sendable static func stampedTime(_ data: UnsafeBufferPointer<UInt8>) -> Int64? {
        guard let at = data.place(of: "\"t\": ") else { return nil }
        return Int64(String(decoding: data[(at + 5)...].prefix { 48...57 ~= $0 }, as: UTF8.self))
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Where the text begins at a place or behind it. A fleet looks for few bytes in many, so that it is not slower than what it measures.
    func place(of text: StaticString, from start: Int = 0) -> Int? {
        guard let base = baseAddress else { return nil }
        let size = text.utf8CodeUnitCount
        var place = start
        while place + size <= count,
            let found = memchr(base + place, Int32(text.utf8Start[0]), count - size + 1 - place)
        {
            place = found - UnsafeMutableRawPointer(mutating: base)
            if memcmp(base + place, text.utf8Start, size) == 0 { return place }
            place += 1
        }
        return nil
    }
}
