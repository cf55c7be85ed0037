import ChildProtocol
import FoundationEssentials
import Glibc
import MillraceJobs
import Subprocesses
import Threads

/// The build that is rehearsed: it takes jobs from a descriptor instead of a database, runs their handlers on what is on record, and says what they asked
/// for. It owns the thread on which it reads.
package actor RehearsalServer {
    /// Which descriptor it is, in the environment of the build.
    package static let variable = "MILLRACE_REHEARSE"
    /// A request: as much as a job can have on record.
    package static let largest = 1 << 30

    private let thread = ThreadExecutor(name: "rehearsal")
    private let handlers: [String: Handler]
    private let descriptor: Int32

    package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    package init(_ handlers: [Handler], descriptor: Int32) {
        self.handlers = Dictionary(handlers.map { ($0.kind, $0) }, uniquingKeysWith: { first, _ in first })
        self.descriptor = descriptor
    }

    deinit { thread.stop() }

    /// nil: this process is not rehearsed.
    package static func descriptor(
        in environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> Int32? {
        environment[variable].flatMap { Int32($0) }.flatMap { $0 > 2 ? $0 : nil }
    }

    /// Until the other end is closed.
    package func run(goesOffline: Bool = true) async {
        let isOffline = goesOffline && Offline.go()
        var reader = FrameReader(longest: [.request: Self.largest])
        var buffer = [UInt8](repeating: 0, count: 65_536)
        guard say(.hello, RehearsalHello(kinds: handlers.keys.sorted(), isOffline: isOffline)) else { return }
        while true {
            do throws(FrameReader.Complaint) {
                while let frame = try reader.next() {
                    guard await answer(frame.payload) else { return }
                }
            } catch {
                return
            }
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            reader.take(buffer[0..<count])
        }
    }

    private func answer(_ payload: [UInt8]) async -> Bool {
        var answer = RehearsalAnswer()
        guard let request = try? JSONDecoder().decode(RehearsalRequest.self, from: Data(payload)) else { return false }
        if let handler = handlers[request.kind] {
            answer = await RehearsedRun(request).run(handler)
        } else {
            answer.end = .unknownKind
        }
        return say(.result, answer)
    }

    /// False: nobody hears it any more.
    private func say(_ kind: Frame.Kind, _ message: some Encodable) -> Bool {
        guard let payload = try? JSONEncoder().encode(message) else { return false }
        let bytes = Frame(kind, Array(payload)).bytes
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }
}
