import Clusters
import CommandKit
import FoundationEssentials
import Glibc

/// What a scenario makes for itself and removes again.
enum Scratch {
    /// - Parameter isOpen: to others too, such as the user that Postgres runs as.
    static func directory(_ name: String, in parent: String = "/tmp", isOpen: Bool = true) throws -> String {
        var template = Array("\(parent)/millrace-\(name)-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw Failure("no temporary directory could be made in \(parent)") }
        if isOpen { chmod(made, 0o755) }
        let path = String(cString: made)
        LoadGround.atEnd { try? FileManager.default.removeItem(atPath: path) }
        return path
    }

    /// A Postgres of its own, not started yet.
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
