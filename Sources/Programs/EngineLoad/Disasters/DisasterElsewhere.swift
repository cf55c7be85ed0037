import Clusters
import CommandKit
import Glibc
import LoadKit
import MillraceQueues
import Postgres
import Subprocesses

/// Disasters that need a server of their own: a clock that steps, a disk that fills, and a copy.
struct DisasterElsewhere: Sendable {
    typealias Play = (Disaster, DisasterWorld, () async throws -> MadeDisaster) async throws -> DisasterOutcome

    let invocation: Invocation
    let directory: String
    let cluster: Cluster
    let isLong: Bool

    func all(_ chosen: [Disaster], play: Play) async throws -> [DisasterOutcome] {
        var outcomes: [DisasterOutcome] = []
        if chosen.contains(.clock) { outcomes.append(try await clock(play)) }
        if chosen.contains(.restored) { outcomes.append(try await restored()) }
        if chosen.contains(.disk) { outcomes.append(try await disk(play)) }
        return outcomes
    }

    /// A dump of the first server's database in another server. Workers that are started there do everything twice.
    private func restored() async throws -> DisasterOutcome {
        var outcome = DisasterOutcome(disaster: .restored)
        let copy = try Scratch.cluster(directory + "/copy", invocation, settings: DisasterWorld.settings)
        try await copy.open()
        let dump = directory + "/dump"
        let office = try await Connection.open(ConnectionOptions(location: copy.url()), name: "load")
        try await office.run(script: .shipped(Array("drop schema if exists millrace cascade".utf8)))
        await office.close()
        for (program, words) in [
            ("pg_dump", ["--format=custom", "--file=\(dump)", cluster.url()]),
            ("pg_restore", ["--exit-on-error", "--dbname=\(copy.url())", dump]),
        ] where !Self.run(["\(cluster.binaries.directory)/\(program)"] + words) {
            outcome.skipped = "\(program) failed"
            return outcome
        }
        let watch = DisasterWatch(directory: directory, location: copy.url(), environment: invocation.environment)
        let answer = try await watch.ask(
            MadeDisaster(culprits: ["migrated on another server"]) {}, within: .seconds(15))
        (outcome.namedBy, outcome.seconds) = (answer?.by, answer?.seconds)
        (outcome.sentence, outcome.command) = (answer?.sentence, answer?.command)
        try await copy.close(.fast)
        return outcome
    }

    /// The database's clock jumps ahead by an hour, as when somebody sets it: those of the workers are behind.
    private func clock(_ play: Play) async throws -> DisasterOutcome {
        guard let clock = try ServerClock(in: directory, of: cluster.binaries) else {
            var outcome = DisasterOutcome(disaster: .clock)
            outcome.skipped = "not made: a server's clock is moved by libfaketime (apt-get install faketime)"
            return outcome
        }
        let moved = try Scratch.cluster(
            directory + "/clocks", invocation, settings: DisasterWorld.settings, binaries: clock.binaries)
        try await moved.openWithSchema()
        let world = try await DisasterWorld(invocation, directory: directory, cluster: moved, isLong: isLong)
        let outcome = try await play(.clock, world) {
            try clock.set(ahead: .seconds(3600))
            // It stays so: set back, it would find jobs whose time has not come yet.
            return MadeDisaster(culprits: ["clock", "1h behind"]) {}
        }
        try await world.stop()
        try await moved.close(.fast)
        return outcome
    }

    private func disk(_ play: Play) async throws -> DisasterOutcome {
        guard let disk = LedgerDisk(in: directory) else {
            var outcome = DisasterOutcome(disaster: .disk)
            outcome.skipped = "not made: this process may not mount a disk"
            return outcome
        }
        LoadGround.atEnd { disk.close() }
        chmod(disk.directory, 0o777)
        let full = try Scratch.cluster(disk.directory + "/pg", invocation, settings: ["max_wal_size": "64MB"])
        try await full.openWithSchema()
        let world = try await DisasterWorld(invocation, directory: directory, cluster: full, isLong: isLong)
        let outcome = try await play(.disk, world) {
            disk.fill()
            return MadeDisaster(culprits: ["No space left on device"]) {
                disk.empty()
                // It may have stopped itself.
                if !full.isRunning() { try await full.open() }
            }
        }
        try await world.stop()
        try await full.close(.fast)
        return outcome
    }

    private static func run(_ words: [String]) -> Bool {
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { Glibc.close(nothing) }
        var child = Subprocess(words[0], Array(words.dropFirst()))
        child.descriptors = [(nothing, 0), (nothing, 1), (nothing, 2)]
        child.hasOwnGroup = false
        return (try? child.start()).flatMap(Subprocess.wait) == 0
    }
}
