import Foundation
import Glibc
import Synchronization

/// What a job carries: its number, and when it was enqueued by the monotonic clock, in nanoseconds.
struct Note: Codable, Sendable {
    var n = 1
    var at: UInt64?
}

/// The private Postgres of a measurement.
struct Place: Sendable {
    /// The folder of its socket.
    var folder: String
    var database: String
    /// How many jobs run at the same time in one worker.
    var slots = 64
}

/// A job system under measurement, through its own public interface.
protocol Peer: Sendable {
    init(_ place: Place, handle: @escaping @Sendable (Note) async throws -> Void) async throws
    /// Makes its schema, or what of it a program has to make.
    func prepare() async throws
    func enqueue(_ note: Note) async throws
    /// In the fastest way that it offers.
    func enqueue(many: Int) async throws
    /// A worker, until SIGTERM.
    func work() async throws
    /// Keeps what enqueuing needs running meanwhile.
    func connected(_ body: @escaping @Sendable () async throws -> Void) async throws
}

/// The verbs that deploy/bench/peers.d/swift.py calls: FOLDER DATABASE VERB …
struct PeerProgram<System: Peer> {
    let place: Place
    let verb: String
    let rest: [String]

    init() {
        let arguments = CommandLine.arguments
        guard arguments.count >= 4 else {
            FileHandle.standardError.write(Data("usage: FOLDER DATABASE VERB …\n".utf8))
            exit(2)
        }
        place = Place(folder: arguments[1], database: arguments[2])
        verb = arguments[3]
        rest = Array(arguments.dropFirst(4))
    }

    private func number(_ index: Int) -> Int { rest.count > index ? Int(rest[index]) ?? 0 : 0 }

    func run() async throws {
        switch verb {
        case "setup": try await client { peer in try await peer.prepare() }
        case "insert": try await insert(number(0))
        case "insert-one": try await insertOne(for: Double(number(0)))
        case "call": try await call(number(0))
        case "put": try await put(from: number(0), count: number(1), every: number(2))
        case "work": try await drain()
        case "serve": try await serve(number(0))
        case "run": try await run(into: rest.first ?? "", milliseconds: UInt64(number(1)))
        default: exit(2)
        }
    }

    private func client(_ body: @escaping @Sendable (System) async throws -> Void) async throws {
        let peer = try await System(place) { _ in }
        try await peer.connected { try await body(peer) }
    }

    private func insert(_ count: Int) async throws {
        try await client { peer in
            let began = Clock.wall
            try await peer.enqueue(many: count)
            say("{\"seconds\": \(Clock.wall - began)}")
        }
    }

    private func insertOne(for seconds: Double) async throws {
        try await client { peer in
            let began = Clock.wall
            var done = 0
            while Clock.wall - began < seconds {
                try await peer.enqueue(Note())
                done += 1
            }
            say("{\"per_second\": \(Double(done) / (Clock.wall - began))}")
        }
    }

    /// One call at a time, each after the worker has gone to sleep again.
    private func call(_ count: Int) async throws {
        try await client { peer in
            for n in 0..<count {
                try await Task.sleep(for: .milliseconds(Int.random(in: 60...140)))
                try await peer.enqueue(Note(n: n, at: Clock.monotonic))
            }
        }
    }

    /// Says of each number whether it was accepted: `+n`, or `?n` where the call threw.
    private func put(from first: Int, count: Int, every microseconds: Int) async throws {
        try await client { peer in
            for n in first..<(first + count) {
                do {
                    try await peer.enqueue(Note(n: n))
                    say("+\(n)")
                } catch {
                    say("?\(n)")
                    try await Task.sleep(for: .milliseconds(50))
                }
                if microseconds > 0 { try await Task.sleep(for: .microseconds(microseconds)) }
            }
        }
    }

    /// Until two seconds without a job have passed.
    private func drain() async throws {
        let began = Clock.wall
        let counted = Counted()
        let peer = try await System(place) { _ in counted.one() }
        let working = Task { try await peer.work() }
        while true {
            try await Task.sleep(for: .milliseconds(100))
            let last = counted.value.last
            if Clock.wall - (last > 0 ? last : began + 30) > 2 { break }
        }
        var used = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &used)
        let cpu =
            Double(used.ru_utime.tv_sec + used.ru_stime.tv_sec)
            + Double(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6
        let value = counted.value
        say(
            "{\"jobs\": \(value.jobs), \"first\": \(value.first), \"last\": \(value.last), \"cpu\": \(cpu), \"mb\": \(Double(used.ru_maxrss) / 1024)}"
        )
        working.cancel()
        exit(0)
    }

    /// The lags of so many jobs, after a first one.
    private func serve(_ count: Int) async throws {
        let lags = Lags(most: count)
        let peer = try await System(place) { note in
            lags.one(Double(Clock.monotonic - (note.at ?? 0)) / 1e6)
        }
        try await peer.work()
    }

    /// A worker whose jobs take some milliseconds and then add their number to a file, in one write.
    private func run(into path: String, milliseconds: UInt64) async throws {
        let file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0o644)
        guard file >= 0 else { exit(3) }
        let peer = try await System(place) { note in
            if milliseconds > 0 { try await Task.sleep(for: .milliseconds(milliseconds)) }
            let line = Array("\(note.n)\n".utf8)
            guard write(file, line, line.count) == line.count else { exit(4) }
        }
        try await peer.work()
    }
}

final class Counted: Sendable {
    private let state = Mutex((jobs: 0, first: 0.0, last: 0.0))

    func one() {
        let now = Clock.wall
        state.withLock { state in
            if state.jobs == 0 { state.first = now }
            state.last = now
            state.jobs += 1
        }
    }

    var value: (jobs: Int, first: Double, last: Double) { state.withLock { $0 } }
}

final class Lags: Sendable {
    private let most: Int
    private let found = Mutex<[Double]>([])

    init(most: Int) { self.most = most }

    func one(_ lag: Double) {
        let all = found.withLock { found in
            found.append(lag)
            return found
        }
        if all.count == 1 { say("first") }
        if all.count == most + 1 {
            say("[\(all.dropFirst().map { "\($0)" }.joined(separator: ", "))]")
            exit(0)
        }
    }
}

enum Clock {
    static var wall: Double { Double(read(CLOCK_REALTIME)) / 1e9 }
    static var monotonic: UInt64 { read(CLOCK_MONOTONIC) }

    private static func read(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

/// A line that is heard at once.
func say(_ text: String) {
    let bytes = Array((text + "\n").utf8)
    _ = write(STDOUT_FILENO, bytes, bytes.count)
}
