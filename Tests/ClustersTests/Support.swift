import Glibc
import TestSupport
import Testing

@testable import Clusters

/// An empty directory that every user can reach, gone afterwards with all clusters given it.
func withDirectory(_ body: (String) async throws -> Void) async throws {
    var template = Array("/tmp/mill-test-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    chmod(directory, 0o755)
    let outcome: Result<Void, any Error>
    do {
        outcome = .success(try await body(directory))
    } catch {
        outcome = .failure(error)
    }
    try await run("rm", ["-rf", directory])
    try outcome.get()
}

/// Runs `body` with a cluster that has not been started; removed afterwards.
func withUnstartedCluster(
    settings: [String: String] = [:], under path: String = "cluster", _ body: (Cluster) async throws -> Void,
) async throws {
    try await withDirectory { directory in
        let binaries = try Cluster.Binaries.locate(environment: [:])
        try await withCluster(Cluster(directory: "\(directory)/\(path)", binaries: binaries, settings: settings), body)
    }
}

/// Runs `body` with a cluster that was created and stopped; removed afterwards.
func withStoppedCluster(
    settings: [String: String] = [:], _ body: (Cluster) async throws -> Void,
) async throws {
    try await withUnstartedCluster(settings: settings) { cluster in
        try await TestCluster.fill(cluster)
        try await body(cluster)
    }
}

@discardableResult
func run(_ program: String, _ arguments: [String]) async throws -> ProgramRun {
    let limit = WorkDeadline(.ample)
    return try await onOwnThread(within: limit) { () throws(ClusterError) in
        try ProgramRun.run(program, arguments, within: limit)
    }
}

extension Cluster {
    /// psql's output for a statement.
    func ask(_ sql: String) async throws -> String {
        let options = ["-X", "-q", "-A", "-t", "-d", url(), "-c", sql]
        let answer = try await run(binaries.program("psql"), options)
        try #require(answer.succeeded, "\(answer.output)")
        return answer.lines.joined(separator: "\n")
    }

    func killServer() throws {
        let server = try #require(self.server)
        kill(server.pid, SIGKILL)
    }

    var remains: [pid_t] { processes?.all() ?? [] }

    /// Where this cluster's sockets are.
    var socketDirectory: String { SocketPlace(directory: resolved, port: port).current }

    func write(_ text: String, to file: String) throws {
        let user = try User.toRun(directory)
        try ClusterFiles.replace("\(directory)/\(file)", with: text, owner: user, in: directory)
    }
}

/// The error a start ends with.
func failure(starting cluster: Cluster, deadline: Duration = .ample) async -> ClusterError? {
    try? await failure(as: ClusterError.self) { _ = try await cluster.start(deadline: deadline) }
}
