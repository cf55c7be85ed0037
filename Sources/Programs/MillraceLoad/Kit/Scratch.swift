import Clusters
import CommandKit
import FoundationEssentials
import Glibc
import Synchronization

/// What a scenario makes for itself and removes again.
enum Scratch {
    private static let kept = Mutex<Set<String>>([])

    /// Where files go that only this user may read.
    static var temporary: String { getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp" }

    /// - Parameter isOpen: to others too, such as the user that Postgres runs as.
    static func directory(_ name: String, in parent: String = "/tmp", isOpen: Bool = true) throws -> String {
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
    static func keep(_ directory: String, _ invocation: Invocation) {
        kept.withLock { _ = $0.insert(directory) }
        invocation.console.note("kept: \(directory)")
    }

    /// A Postgres of its own, not started yet. It ends with the scenario.
    static func cluster(_ directory: String, _ invocation: Invocation, settings: [String: String]) throws -> Cluster {
        do {
            let cluster = Cluster(
                directory: directory, binaries: try Cluster.Binaries.locate(environment: invocation.environment),
                settings: settings)
            LoadGround.atEnd { if cluster.isRunning() { try? await cluster.stop(.immediate, deadline: .seconds(30)) } }
            return cluster
        } catch {
            throw Failure(error.description)
        }
    }
}

extension Cluster {
    /// Started, or a failure that says why not.
    func open(within limit: Duration = .seconds(120)) async throws(Failure) {
        do {
            _ = try await start(deadline: limit)
        } catch {
            throw Failure(error.description)
        }
    }

    /// Stopped in this way, or a failure that says why not.
    func close(_ mode: Stop, within limit: Duration = .seconds(60)) async throws(Failure) {
        do {
            try await stop(mode, deadline: limit)
        } catch {
            throw Failure(error.description)
        }
    }
}
