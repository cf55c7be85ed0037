import CLinux
package import Foundation
import Glibc
import Synchronization
import Threads

/// A Chromium without a screen, driven by its DevTools protocol over a pipe. It ends with `close()`, and by itself when this process ends.
package final class Browser: Sendable {
    package struct Failed: Error, CustomStringConvertible {
        package let description: String
    }

    /// nil: not installed, and the tests that need it are skipped.
    package static let program = [
        "/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome",
    ].first { (path: String) in access(path, X_OK) == 0 }

    /// Where screenshots are written: MILLRACE_SCREENSHOTS. nil: there are none, for a picture of a whole page costs more than all checks of it.
    package static let screenshots: URL? = {
        let given = ProcessInfo.processInfo.environment["MILLRACE_SCREENSHOTS"] ?? ""
        return given.isEmpty ? nil : URL(filePath: given)
    }()

    private struct State {
        var lastCommand = 0
        var waiting: [Int: CheckedContinuation<Data, any Error>] = [:]
        /// What each page does with an event, by the session that it is attached with.
        var listeners: [String: @Sendable (String, [String: Any]) -> Void] = [:]
        var hasEnded = false
    }

    private let state = Mutex(State())
    /// The end of the pipe that commands are written to.
    private let commands: Mutex<Int32>
    private let process: pid_t
    private let folder: URL

    /// Starts it with a profile of its own.
    package init() throws {
        guard let program = Self.program else { throw Failed(description: "chromium is not installed") }
        folder = FileManager.default.temporaryDirectory.appending(path: "millrace-browser-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var arguments = [
            program, "--headless", "--remote-debugging-pipe", "--user-data-dir=\(folder.path)", "--no-first-run",
            "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-extensions",
            "--no-default-browser-check", "about:blank",
        ]
        // Chromium refuses to start its own sandbox as root; the pages are ours.
        if geteuid() == 0 { arguments.insert("--no-sandbox", at: 1) }
        let (toBrowser, fromBrowser) = (try Self.pipe(), try Self.pipe())
        defer {
            Glibc.close(toBrowser.reading)
            Glibc.close(fromBrowser.writing)
        }
        commands = Mutex(toBrowser.writing)
        process = try Self.spawn(
            arguments, reads: toBrowser.reading, writes: fromBrowser.writing,
            log: folder.appending(path: "errors.txt").path)
        let reading = fromBrowser.reading
        Thread.start(name: "browser") { [self] in read(reading) }
    }

    /// Ends it, and removes its profile.
    package func close() async {
        let process = process
        await Thread.run(name: "browser-end") {
            kill(-process, SIGKILL)
            waitpid(process, nil, 0)
        }
        commands.withLock { end in
            if end >= 0 { Glibc.close(end) }
            end = -1
        }
        try? FileManager.default.removeItem(at: folder)
    }

    /// A page with cookies and storage of its own.
    package func page() async throws -> BrowserPage {
        struct Context: Decodable { let browserContextId: String }
        struct Target: Decodable { let targetId: String }
        struct Session: Decodable { let sessionId: String }
        let context = try await send("Target.createBrowserContext", as: Context.self)
        let target = try await send(
            "Target.createTarget", ["url": "about:blank", "browserContextId": context.browserContextId],
            as: Target.self)
        let session = try await send(
            "Target.attachToTarget", ["targetId": target.targetId, "flatten": true], as: Session.self)
        let page = BrowserPage(browser: self, session: session.sessionId)
        state.withLock { $0.listeners[session.sessionId] = { method, event in page.note(method, event) } }
        try await page.start()
        return page
    }

    /// Sends a command of the DevTools protocol, and returns its result.
    @discardableResult
    package func send(
        _ method: String, _ parameters: [String: any Sendable] = [:], session: String? = nil
    ) async throws -> Data {
        let number = state.withLock { state in
            state.lastCommand += 1
            return state.lastCommand
        }
        // A promise of a page without scripts, say, is never kept.
        let limit = Task {
            try await Task.sleep(for: Self.longestCommand)
            let waiting = state.withLock { $0.waiting.removeValue(forKey: number) }
            waiting?.resume(
                throwing: Failed(description: "\(method) has no answer after \(Self.longestCommand): \(parameters)"))
        }
        defer { limit.cancel() }
        return try await withCheckedThrowingContinuation { continuation in
            let isOpen = state.withLock { state in
                guard !state.hasEnded else { return false }
                state.waiting[number] = continuation
                return true
            }
            guard isOpen else { return continuation.resume(throwing: ended(during: method)) }
            var message: [String: any Sendable] = ["id": number, "method": method, "params": parameters]
            if let session { message["sessionId"] = session }
            do {
                var bytes = try JSONSerialization.data(withJSONObject: message)
                bytes.append(0)
                try write(bytes, of: method)
            } catch {
                state.withLock { $0.waiting.removeValue(forKey: number) }?.resume(throwing: error)
            }
        }
    }

    private static let longestCommand = Duration.seconds(180)

    package func send<Result: Decodable>(
        _ method: String, _ parameters: [String: any Sendable] = [:], session: String? = nil, as type: Result.Type
    ) async throws -> Result {
        try JSONDecoder().decode(type, from: try await send(method, parameters, session: session))
    }

    private func ended(during method: String) -> Failed {
        let log = (try? String(contentsOf: folder.appending(path: "errors.txt"), encoding: .utf8)) ?? ""
        return Failed(description: "the browser has ended (\(method)); it said: \(log.suffix(2000))")
    }

    private func write(_ bytes: Data, of method: String) throws {
        let isWritten = commands.withLock { end in
            var rest = bytes[...]
            while !rest.isEmpty, end >= 0 {
                let count = rest.withUnsafeBytes { Glibc.write(end, $0.baseAddress, $0.count) }
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
            }
            return rest.isEmpty
        }
        guard isWritten else { throw ended(during: method) }
    }

    /// Reads messages, each ended by a zero byte, until the browser ends.
    private func read(_ end: Int32) {
        var unread = Data()
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = Glibc.read(end, &bytes, bytes.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { break }
            unread.append(contentsOf: bytes[..<count])
            while let zero = unread.firstIndex(of: 0) {
                take(Data(unread[unread.startIndex..<zero]))
                unread = Data(unread[(zero + 1)...])
            }
        }
        Glibc.close(end)
        let waiting = state.withLock { state in
            state.hasEnded = true
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for one in waiting { one.resume(throwing: ended(during: "waiting")) }
    }

    private func take(_ bytes: Data) {
        guard let message = (try? JSONSerialization.jsonObject(with: bytes)) as? [String: Any] else { return }
        guard let number = message["id"] as? Int else {
            let session = message["sessionId"] as? String ?? ""
            let listener = state.withLock { $0.listeners[session] }
            listener?(message["method"] as? String ?? "", message["params"] as? [String: Any] ?? [:])
            return
        }
        let waiting = state.withLock { $0.waiting.removeValue(forKey: number) }
        if let error = message["error"] as? [String: Any] {
            waiting?.resume(throwing: Failed(description: "the browser answered: \(error["message"] ?? error)"))
        } else {
            let result = message["result"] as? [String: Any] ?? [:]
            waiting?.resume(with: Swift.Result { try JSONSerialization.data(withJSONObject: result) })
        }
    }

    // MARK: the process

    /// Both ends are numbered so high that they cannot be in the way of those the browser expects.
    private static func pipe() throws -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [0, 0]
        guard millrace_pipe(&ends, O_CLOEXEC) == 0 else { throw Failed(description: "no pipe: errno \(errno)") }
        let high = ends.map { fcntl($0, F_DUPFD_CLOEXEC, 100) }
        for end in ends { Glibc.close(end) }
        return (high[0], high[1])
    }

    /// The browser reads commands from descriptor 3 and writes to descriptor 4.
    private static func spawn(_ arguments: [String], reads: Int32, writes: Int32, log: String) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, reads, 3)
        posix_spawn_file_actions_adddup2(&actions, writes, 4)
        _ = millrace_spawn_close_from(&actions, 5)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A group of its own, so that its helpers end with it.
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        posix_spawnattr_setpgroup(&attributes, 0)
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process: pid_t = 0
        let problem = posix_spawn(&process, arguments[0], &actions, &attributes, &words, environ)
        guard problem == 0 else { throw Failed(description: "\(arguments[0]) did not start: errno \(problem)") }
        return process
    }
}

/// Runs `body` with a browser of its own.
package func withBrowser<Value>(_ body: (Browser) async throws -> Value) async throws -> Value {
    let browser = try Browser()
    let outcome: Result<Value, any Error>
    do {
        outcome = .success(try await body(browser))
    } catch {
        outcome = .failure(error)
    }
    await browser.close()
    return try outcome.get()
}
