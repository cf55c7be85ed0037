package import Clusters
import Foundation

extension TestCluster {
    /// A cluster that was created and stopped. Creating one takes a second of processor time, and copying it a twentieth of that.
    private static let created = Task {
        let cluster = try Cluster(
            directory: "\(prefix)\(getpid())-created", binaries: .locate(environment: [:]), settings: ["fsync": "off"])
        removeAtEnd(cluster)
        _ = try await cluster.start(deadline: .ample)
        try await cluster.stop(.fast, deadline: .ample)
        return cluster
    }

    /// Makes this cluster, whose directory must not be there yet, a copy of one that was created and stopped.
    package static func fill(_ cluster: Cluster) async throws {
        try await Program.check("cp", ["-a", created.value.directory, cluster.directory])
        // By this name a cluster tells its processes from those of others.
        let name = "millrace-" + String(UInt64.random(in: .min ... .max), radix: 36) + "\n"
        try name.write(toFile: cluster.directory + "/name", atomically: false, encoding: .utf8)
    }
}
