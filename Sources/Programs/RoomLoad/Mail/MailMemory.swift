import Blobs
import Clusters
import CommandKit
import FoundationEssentials
import LoadKit
import Postgres

/// A worker in its own process, many large files under way, and its peak memory.
struct MailMemory: Sendable {
    let invocation: Invocation
    let port: Int
    var messages = 100
    var bytes = 25 * 1_048_576

    func run(_ bars: inout [Bar], _ figures: inout [(String, JSONValue)]) async throws {
        let (directory, cluster) = try await Scratch.postgres(
            "mail", invocation, settings: ["max_connections": "60"])
        let workers = KeptWorkers(directory: directory)
        let options = ConnectionOptions(location: cluster.url())
        let connection = try await Connection.open(options, name: "load")
        try await handIn(directory + "/blobs", options, on: connection)
        let began = ContinuousClock.now
        start(workers, database: cluster.url(), blobs: directory + "/blobs")
        var peak = 0
        let isDone = try await Patience.waited(.seconds(900), every: .milliseconds(200)) {
            if let pid = workers.pid(of: "worker") { peak = max(peak, ProcessTable.resident(of: pid).most) }
            return try await connection.int(
                "select count(*) from millrace.mail where status in ('accepted', 'failed', 'parked')") == messages
        }
        let took = (ContinuousClock.now - began) / .seconds(1)
        let accepted =
            try await connection.int("select count(*) from millrace.mail where status = 'accepted'")
        let complaints = try await connection.query(
            "select error || ' (' || count(*) || ' times)' from millrace.mail where status <> 'accepted' group by error"
        ) { row throws(PostgresError) in row.optionalString(0) ?? "-" }
        for complaint in complaints { invocation.console.note("not taken: \(complaint)") }
        await connection.close()
        guard isDone else { throw Failure("not all messages were taken within a quarter of an hour") }
        _ = try await workers.stop()
        bars.append(
            .atMost(
                "\(messages) mails with \(Humane.count(bytes)) different bytes attached to each: the worker's memory at its most",
                300, measured: Double(peak) / 1e6, unit: "MB"))
        bars.append(
            .atLeast("of them taken by the provider", Double(messages), measured: Double(accepted), unit: ""))
        figures += [("memory_peak_bytes", .int(peak)), ("memory_seconds", .double(took))]
    }

    private func handIn(_ folder: String, _ options: ConnectionOptions, on connection: Connection) async throws {
        let pool = Pool(options, size: 2)
        let store = DirectoryStore(folder, pool: pool)
        let live = invocation.console.live()
        var tenths = Tenths()
        for number in 1...messages {
            let (id, _) = try await store.put(Noise(seed: UInt64(number), left: bytes), limit: .max)
            try await connection.execute(
                """
                select millrace.mail_send(array[$1], 'A large file', 'It is attached.', attachments => jsonb_build_array(
                    jsonb_build_object('filename', 'large.pdf', 'content_type', 'application/pdf', 'blob', $2::text)))::text
                """, [.text("m\(number)@example.org"), .text("\(id)")]
            )
            if tenths.pass(number, of: messages) { live.update(["made \(number) of \(messages) files"]) }
        }
        live.update([])
        await pool.close()
    }

    private func start(_ workers: KeptWorkers, database: String, blobs: String) {
        var environment = invocation.environment
        for name in environment.keys where name.hasPrefix("MILLRACE_") { environment[name] = nil }
        environment.merge([
            "DATABASE_URL": database, "MILLRACE_BLOBS": "dir:\(blobs)", "MILLRACE_LISTEN": "off",
            "RESEND_API_KEY": "re_test", "RESEND_EMAIL_ENABLED": "true",
            "RESEND_BASE_URL": "http://127.0.0.1:\(port)", "EMAIL_FROM_ADDRESS": "load@example.net",
            "MILLRACE_MAIL_TIMEOUT": "300s", "MILLRACE_MAIL_TOTAL": "600s",
        ]) { $1 }
        workers.keep("worker", arguments: ["worker", "--slots", "\(max(100, messages))"], environment: environment)
    }
}

/// Bytes that no compression makes smaller and no other file has.
private struct Noise: AsyncSequence, AsyncIteratorProtocol {
    var seed: UInt64
    var left: Int

    func makeAsyncIterator() -> Noise { self }

    mutating func next() async -> [UInt8]? {
        guard left > 0 else { return nil }
        let count = Swift.min(left, 262_144)
        left -= count
        var state = seed
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            for index in 0..<count {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                buffer[index] = UInt8(truncatingIfNeeded: state >> 33)
            }
            initialized = count
        }
        seed = state
        return bytes
    }
}
