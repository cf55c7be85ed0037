package import Clusters
package import CommandKit
import FoundationEssentials
import Glibc
import MillraceQueues
import Postgres
import Synchronization

/// What a scenario makes for itself and removes again.
package enum Scratch {
    private static let kept = Mutex<Set<String>>([])

    /// Where files go that only this user may read.
    package static var temporary: String { getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp" }

    /// - Parameter isOpen: to others too, such as the user that Postgres runs as.
    package static func directory(_ name: String, in parent: String = "/tmp", isOpen: Bool = true) throws -> String {
        var template = Array("\(parent)/millrace-\(name)-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw Failure("no temporary directory could be made in \(parent)") }
        if isOpen { chmod(made, 0o755) }
        let path = String(cString: made)
        LoadGround.atEnd {
            guard !kept.withLock({ $0.contains(path) }) else { return }
            try? FileManager.default.removeItem(atPath: path)
        }
        return path
    }

    /// With `--keep`: this directory stays, and it is said where it is.
    package static func keep(_ directory: String, _ invocation: Invocation) {
        kept.withLock { _ = $0.insert(directory) }
        invocation.console.note("kept: \(directory)")
    }

    /// A Postgres of its own, not started yet. It ends with the scenario.
    package static func cluster(
        _ directory: String, _ invocation: Invocation, settings: [String: String], binaries: Cluster.Binaries? = nil
    ) throws -> Cluster {
        do {
            let programs =
                if let binaries { binaries } else { try Cluster.Binaries.locate(environment: invocation.environment) }
            let cluster = Cluster(directory: directory, binaries: programs, settings: settings)
            LoadGround.atEnd { if cluster.isRunning() { try? await cluster.stop(.immediate, deadline: .seconds(30)) } }
            return cluster
        } catch {
            throw Failure(error.description)
        }
    }
}

extension Scratch {
    /// A Postgres of its own that runs and has the schema of every room, in a directory of its own.
    package static func postgres(
        _ name: String, _ invocation: Invocation, settings: [String: String]
    ) async throws -> (directory: String, cluster: Cluster) {
        let directory = try Self.directory(name)
        let cluster = try Self.cluster(directory + "/pg", invocation, settings: settings)
        try await cluster.openWithSchema()
        return (directory, cluster)
    }
}

extension Cluster {
    /// Started, with the schema of every room.
    package func openWithSchema() async throws {
        try await open()
        let connection = try await Connection.open(ConnectionOptions(location: url()), name: "load")
        _ = try await Migrator.ofAllRooms().migrate(on: connection)
        await connection.close()
    }

    /// Started, or a failure that says why not.
    package func open(within limit: Duration = .seconds(120)) async throws(Failure) {
        do {
            _ = try await start(deadline: limit)
        } catch {
            throw Failure(error.description)
        }
    }

    /// Stopped in this way, or a failure that says why not.
    package func close(_ mode: Stop, within limit: Duration = .seconds(60)) async throws(Failure) {
        do {
            try await stop(mode, deadline: limit)
        } catch {
            throw Failure(error.description)
        }
    }
}
