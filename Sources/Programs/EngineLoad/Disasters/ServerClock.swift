import Clusters
import FoundationEssentials
import Glibc

/// Programs of a Postgres whose clock can be set, with libfaketime.
struct ServerClock: Sendable {
    let binaries: Cluster.Binaries
    private let file: String

    /// Nothing where the library is not installed.
    init?(in directory: String, of real: Cluster.Binaries) throws {
        guard let library = Self.library() else { return nil }
        let programs = directory + "/programs-with-a-clock"
        file = directory + "/clock"
        try FileManager.default.createDirectory(atPath: programs, withIntermediateDirectories: true)
        let names = try FileManager.default.contentsOfDirectory(atPath: real.directory)
        for name in names {
            // Each runs the real one, which finds its files beside itself; what it starts has the clock too.
            let script = """
                #!/bin/sh
                export LD_PRELOAD=\(library) FAKETIME_TIMESTAMP_FILE=\(file) FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1
                exec \(real.directory)/\(name) "$@"

                """
            try script.write(toFile: "\(programs)/\(name)", atomically: false, encoding: .utf8)
            chmod("\(programs)/\(name)", 0o755)
        }
        binaries = Cluster.Binaries(directory: programs, major: real.major)
        try set(ahead: .zero)
        // The server runs as a user of its own.
        for path in [programs, directory] { chmod(path, 0o755) }
    }

    func set(ahead: Duration) throws {
        try "+\(ahead.components.seconds)\n".write(toFile: file, atomically: false, encoding: .utf8)
        chmod(file, 0o644)
    }

    /// Where Debian's package puts it, for any machine.
    private static func library() -> String? {
        let roots = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib")) ?? []
        return roots.map { "/usr/lib/\($0)/faketime/libfaketime.so.1" }.first { access($0, R_OK) == 0 }
    }
}
