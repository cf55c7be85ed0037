import Glibc

/// The contents of `postmaster.pid`; Postgres writes it line by line while it starts.
struct PidFile: Equatable {
    enum Status: Equatable {
        case starting
        case ready
        case stopping
    }

    let pid: pid_t
    let port: Int?
    let status: Status

    init?(_ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let first = lines.first, let pid = pid_t(first.trimmed), pid > 0 else { return nil }
        self.pid = pid
        port = lines.count > 3 ? Int(lines[3].trimmed) : nil
        switch lines.count > 7 ? lines[7].trimmed : "" {
        case "ready", "standby": status = .ready
        case "stopping": status = .stopping
        default: status = .starting
        }
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        let blank: (Character) -> Bool = { $0.isWhitespace }
        var rest = drop(while: blank)
        while let last = rest.last, blank(last) { rest.removeLast() }
        return rest
    }
}

/// Recognises the processes of one cluster by the cluster's name in their command lines.
///
/// A number in a pid file proves nothing: after a reboot or a container's restart another process may have it, and Postgres would then
/// refuse to start. Working directories would be proof, too, but root in a container may not read them.
struct Processes {
    /// The `cluster_name`, unlike any other.
    let name: String

    func isOurs(_ pid: pid_t) -> Bool {
        ClusterFiles.read("/proc/\(pid)/cmdline").map(isOurs(commandLine:)) ?? false
    }

    /// The postmaster has the name as an argument, its children in their titles: `postgres: name: checkpointer`; and
    /// so that none is overlooked that is about to be, pg_ctl and the shell it starts count too.
    func isOurs(commandLine: String) -> Bool {
        if commandLine.hasPrefix("postgres: \(name): ") { return true }
        let arguments = commandLine.split(separator: "\0")
        guard let program = arguments.first?.split(separator: "/").last else { return false }
        return switch program {
        case "postgres": arguments.contains("cluster_name=\(name)")
        case "pg_ctl", "sh": arguments.contains { $0.contains("cluster_name=\(name)") }
        default: false
        }
    }

    func all() -> [pid_t] {
        (ClusterFiles.list("/proc") ?? []).compactMap { pid_t($0) }.filter(isOurs)
    }
}
