package import Clusters
import FoundationEssentials
import Glibc

/// The private Postgres of this directory.
package struct Embedded: Sendable {
    package let cluster: Cluster

    /// Beside the project; for root below a directory that others may not enter, under /var/lib instead, for Postgres does not
    /// run as root.
    package init(settings: Settings, environment: [String: String], workingDirectory: String) throws(Failure) {
        guard var directory = settings.directory else {
            throw Failure(
                .misused, "no directory for the embedded Postgres can be written to", hint: "set MILLRACE_DIR")
        }
        if !directory.hasPrefix("/") { directory = workingDirectory + "/" + directory }
        if getuid() == 0, settings.entry(.directory)?.origin == .fallback, !Self.othersMayEnter(workingDirectory) {
            directory = "/var/lib/millrace"
        }
        do {
            cluster = Cluster(
                directory: directory + "/postgres", binaries: try Cluster.Binaries.locate(environment: environment))
        } catch {
            throw Failure(error.description)
        }
    }

    package func start() async throws(Failure) -> Cluster.Started {
        do {
            return try await cluster.start(deadline: .seconds(120))
        } catch {
            throw Failure(error.description)
        }
    }

    /// True when this process should stop the cluster at the end: because it started the cluster, or because the starter died.
    package func takeOver(_ started: Cluster.Started) -> Bool {
        let note = cluster.directory + "/dev.pid"
        if started == .alreadyRunning, let text = try? String(contentsOfFile: note, encoding: .utf8),
            let pid = pid_t(text),
            pid != getpid(), kill(pid, 0) == 0
        {
            return false
        }
        try? "\(getpid())".write(toFile: note, atomically: true, encoding: .utf8)
        return true
    }

    private static func othersMayEnter(_ path: String) -> Bool {
        var path = path
        while true {
            var info = stat()
            guard stat(path, &info) == 0, info.st_mode & S_IXOTH != 0 else { return false }
            guard path != "/", let slash = path.lastIndex(of: "/") else { return true }
            path = slash == path.startIndex ? "/" : String(path[..<slash])
        }
    }
}
