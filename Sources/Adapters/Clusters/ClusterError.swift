/// What can go wrong with a private Postgres, each as a sentence an operator can act on.
package enum ClusterError: Error, Equatable, Sendable {
    case noPostgres
    case unusableBinaries(directory: String, reason: String)
    case tooOld(directory: String, major: Int)
    case noUserToRunAs
    case missingTool(name: String)
    case closedParent(directory: String, parent: String, user: String)
    case foreignDirectory(String)
    case belongsToAnother(directory: String, user: String)
    case unusableDirectory(String, reason: String)
    case otherMajor(directory: String, found: String, have: Int)
    case damaged(directory: String, reason: String)
    case diskFull(directory: String)
    case busy(directory: String)
    case failed(step: String, log: [String])
    case late(step: String, advice: String, log: [String])
    case cancelled
}

extension ClusterError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noPostgres:
            """
            No Postgres 14 or newer is installed here. Install it (Debian: apt-get install postgresql-15), \
            or name the directory of its programs in MILLRACE_POSTGRES_BIN.
            """
        case .unusableBinaries(let directory, let reason):
            "The Postgres programs in \(directory) cannot be used: \(reason). Is MILLRACE_POSTGRES_BIN right?"
        case .tooOld(let directory, let major):
            "The Postgres in \(directory) is version \(major); Millrace needs 14 or newer."
        case .noUserToRunAs:
            "Postgres refuses to run as root, and there is neither a user postgres nor nobody to run it as. Add one."
        case .missingTool(let name):
            "The program \(name) is missing; as root it is needed to run Postgres. Install the package util-linux."
        case .closedParent(let directory, let parent, let user):
            """
            Postgres runs as user \(user), who cannot reach \(directory): \(parent) lets nobody else through. \
            Run chmod o+x \(parent), or choose a directory elsewhere.
            """
        case .foreignDirectory(let directory):
            "\(directory) holds files that are not ours, so nothing was touched. Choose an empty or a new directory."
        case .belongsToAnother(let directory, let user):
            "\(directory) belongs to user \(user). Run as that user or as root, or choose another directory."
        case .unusableDirectory(let directory, let reason):
            "\(directory) cannot be used: \(reason). Fix that, or choose another directory."
        case .otherMajor(let directory, let found, let have):
            """
            The data in \(directory) is from Postgres \(found), but the programs are from Postgres \(have). \
            Set MILLRACE_POSTGRES_BIN to the programs of Postgres \(found) (Debian: /usr/lib/postgresql/\(found)/bin), \
            or choose another directory.
            """
        case .damaged(let directory, let reason):
            "The cluster in \(directory) is damaged: \(reason). Restore it, or move it away to start with a new one."
        case .diskFull(let directory):
            "The disk that holds \(directory) is full. Make room there (a new cluster needs about 100 MB) and start again."
        case .busy(let directory):
            "Another process is starting or stopping the cluster in \(directory), and did not finish in time. Try again."
        case .failed(let step, let log):
            "\(step) failed." + Self.quote(log)
        case .late(let step, let advice, let log):
            "\(step) did not finish in time. \(advice)" + Self.quote(log)
        case .cancelled:
            "Cancelled before the cluster was ready."
        }
    }

    private static func quote(_ log: [String]) -> String {
        log.isEmpty ? "" : " Its last lines:\n" + log.map { "    \($0)" }.joined(separator: "\n")
    }
}
