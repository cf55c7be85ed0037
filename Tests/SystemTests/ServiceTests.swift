import Foundation
import Postgres
import TestSupport
import Testing

/// What a service manager receives from the real worker, over a real datagram socket.
@Suite struct ServiceTests {
    @Test(arguments: [false, true]) func `it says that it is ready when its session is open, and when it stops`(
        _ isAbstract: Bool
    ) async throws {
        try await withDatabase { database in
            let manager = try Manager(isAbstract: isAbstract)
            let gate = try await database.connect()
            let other = try await database.connect()
            // Nobody can make a session known.
            try await gate.run("begin; lock table millrace.session in exclusive mode")
            let worker = try MillraceProcess(
                ["worker", "--practice", "--name", "kept"], database: database.url,
                environment: ["NOTIFY_SOCKET": manager.name])
            try await eventually("the worker waits for the table; it says: \(worker.output)") {
                try await other.bool(
                    "select exists (select from pg_stat_activity where datname = current_database() and query like '%session_open%' and wait_event_type = 'Lock')"
                )
            }
            #expect(!manager.heard("READY=1"))
            try await gate.run("commit")
            try await eventually("it is ready") { manager.heard("READY=1") }
            #expect(try await other.int("select count(*) from millrace.session") == 1)
            #expect(!manager.heard("STOPPING=1"))
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            #expect(manager.heard("STOPPING=1"))
            #expect(manager.heard("STATUS=draining"))
            #expect(!manager.heard("WATCHDOG=1"), "nobody asked for that")
            await gate.close()
            await other.close()
        }
    }

    @Test func `signs of life come with the beats, and end with them`() async throws {
        try await withDatabase { database in
            let manager = try Manager(isAbstract: false)
            let worker = try await MillraceProcess.worker(
                "kept", database: database.url,
                environment: ["NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "60000000"])
            try await eventually("two signs of life") { manager.count("WATCHDOG=1") >= 2 }
            worker.signal(SIGSTOP)
            try await eventually("it is stopped") {
                let status = try String(contentsOfFile: "/proc/\(worker.pid)/status", encoding: .utf8)
                return status.contains("State:\tT")
            }
            let before = manager.count("WATCHDOG=1")
            try await Task.sleep(for: .seconds(5))  // two beats and more: a stopped process sends nothing, however long
            #expect(manager.count("WATCHDOG=1") == before)
            worker.signal(SIGCONT)
            try await eventually("another sign of life") { manager.count("WATCHDOG=1") > before }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
        }
    }

    @Test func `a beat that fails while the database is there is no sign of life`() async throws {
        try await withDatabase { database in
            let manager = try Manager(isAbstract: true)
            let connection = try await database.connect()
            let worker = try await MillraceProcess.worker(
                "kept", database: database.url,
                environment: ["NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "60000000"])
            try await eventually("a sign of life") { manager.heard("WATCHDOG=1") }
            try await connection.run("alter table millrace.beat rename column running to walking")
            try await eventually("a beat has failed") { worker.output.contains("a beat failed") }
            let before = manager.count("WATCHDOG=1")
            let told = manager.count("STATUS=")
            try await eventually("it has tried twice more") { manager.count("STATUS=") >= told + 2 }
            #expect(manager.count("WATCHDOG=1") == before)
            try await connection.run("alter table millrace.beat rename column walking to running")
            try await eventually("another sign of life") { manager.count("WATCHDOG=1") > before }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }
}

/// Listens as systemd does.
private final class Manager: @unchecked Sendable {  // used by one test at a time
    let name: String
    private let descriptor: Int32
    private var datagrams: [String] = []

    init(isAbstract: Bool) throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "notify-\(UUID().uuidString)").path
        name = isAbstract ? "@" + path : path
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(name.utf8)
        if isAbstract { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let size = MemoryLayout<sa_family_t>.size + bytes.count + (isAbstract ? 0 : 1)
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(size)) }
        }
        try #require(bound == 0)
    }

    deinit {
        close(descriptor)
        if name.hasPrefix("/") { unlink(name) }
    }

    func count(_ line: String) -> Int {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let size = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            guard size > 0 else { break }
            datagrams.append(String(decoding: buffer.prefix(size), as: UTF8.self))
        }
        return datagrams.count { $0.split(separator: "\n").contains { $0.hasPrefix(line) } }
    }

    func heard(_ line: String) -> Bool { count(line) > 0 }
}
