import Clusters
import Glibc

/// What a scenario makes for itself and takes away again.
enum Scratch {
    /// - Parameter isOpen: to others too, such as the user that Postgres runs as.
    static func directory(_ name: String, in parent: String = "/tmp", isOpen: Bool = true) throws -> String {
        var template = Array("\(parent)/millrace-\(name)-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw Failure("no temporary directory could be made in \(parent)") }
        if isOpen { chmod(made, 0o755) }
        return String(cString: made)
    }

    /// A Postgres of its own, not started yet.
    static func cluster(_ directory: String, _ invocation: Invocation, settings: [String: String]) throws -> Cluster {
        do {
            return Cluster(
                directory: directory, binaries: try Cluster.Binaries.locate(environment: invocation.environment),
                settings: settings)
        } catch {
            throw Failure(error.description)
        }
    }
}
