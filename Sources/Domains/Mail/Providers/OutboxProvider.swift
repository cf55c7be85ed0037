package import Faults
import FoundationEssentials
import Glibc
package import Supervision
import Threads

/// Writes messages into a directory instead of sending them, for newcomers without a key and for tests. The same letter is always the same
/// file.
package struct OutboxProvider: MailProvider {
    package let name = "outbox"
    package let capabilities: Capabilities
    private let directory: String
    private let blobs: BlobSource

    /// - Parameter directory: It is created for the first message.
    package init(directory: String, blobs: BlobSource) {
        self.directory = directory
        self.blobs = blobs
        var capabilities = Capabilities()
        capabilities.keyHolds = .seconds(365 * 86_400)
        self.capabilities = capabilities
    }

    package func objection(to letter: Letter) -> String? {
        do { try letter.check() } catch { return error.description }
        return nil
    }

    package func send(_ letters: [Letter], key: String, call: Call) async -> [SendOutcome] {
        var handovers: [SendOutcome] = []
        for letter in letters {
            do {
                handovers.append(.accepted(id: try await put(letter)))
            } catch let fault as Fault {
                handovers.append(.refused(fault))
            } catch is CancellationError {
                handovers.append(.refused(Fault(.cancelled, "the caller gave up")))
            } catch {
                handovers.append(.refused(Fault(.internal, "an attachment could not be read: \(error)")))
            }
        }
        return handovers
    }

    package func status(of id: String, call: Call) async throws(Fault) -> String? { nil }

    /// Names sort by time; the id distinguishes messages of the same second.
    package static func fileName(of letter: Letter) -> String {
        "\(MessageDate.compact(letter.date))-\(letter.id.uuidString.lowercased()).eml"
    }

    private func put(_ letter: Letter) async throws -> String {
        let name = Self.fileName(of: letter)
        let file = DraftFile(directory: directory, name: name)
        do {
            try await file.open()
            try await Message.wire(letter, showsBlindCopies: true).read(from: blobs) { try await file.write($0) }
            try await file.publish()
        } catch {
            await file.discard()
            throw error
        }
        return name
    }
}

/// A file that appears under its name as a whole or not at all. Its calls block, so it has its own thread.
private actor DraftFile {
    private let thread = ThreadExecutor(name: "outbox")
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
    private let directory: String
    private let place: String
    private let draft: String
    private var descriptor: Int32 = -1

    init(directory: String, name: String) {
        self.directory = directory
        place = "\(directory)/\(name)"
        draft = "\(directory)/.\(name).\(getpid())-\(UInt32.random(in: 0 ... .max))"
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
        thread.stop()
    }

    func open() throws(Fault) {
        makeDirectories()
        descriptor = Glibc.open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o640)
        guard descriptor >= 0 else { throw failed("the outbox's directory cannot be written to") }
    }

    func write(_ bytes: [UInt8]) throws(Fault) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress?.advanced(by: sent), bytes.count - sent)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failed("a message cannot be written to the outbox") }
            sent += count
        }
    }

    func publish() throws(Fault) {
        guard fsync(descriptor) == 0, rename(draft, place) == 0 else {
            throw failed("a message cannot be put into the outbox")
        }
        let folder = Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if folder >= 0 {
            fsync(folder)
            close(folder)
        }
    }

    func discard() { unlink(draft) }

    private func makeDirectories() {
        var path = directory.hasPrefix("/") ? "" : "."
        let parts = directory.split(separator: "/")
        for (index, part) in parts.enumerated() {
            path += "/\(part)"
            // Other users, such as that of an embedded Postgres, must be able to pass through the directories above. A missing right shows
            // when the file is opened.
            mkdir(path, index == parts.count - 1 ? 0o750 : 0o755)
        }
    }

    private func failed(_ what: String) -> Fault {
        Fault(.unavailable, code: "errno \(errno)", "\(what): \(String(cString: strerror(errno)))")
    }
}
