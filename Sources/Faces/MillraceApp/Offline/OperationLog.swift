import Foundation

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The file of a queue: one line for an operation that was added, one for an operation that has ended. A line begins with a checksum, is
/// written and synced before anybody is told, and what a crash left of a last line is cut off.
///
/// All of it runs on one serial dispatch queue, since it blocks. `@unchecked`: every stored variable is read and written on that queue only.
final class OperationLog: @unchecked Sendable {
    enum Record: Equatable {
        case added(QueuedOperation)
        case ended(UUID)
    }

    /// What was found when it was opened.
    struct Found: Sendable {
        var pending: [QueuedOperation] = []
        /// Lines in the middle that a damaged disk has changed; they are left out.
        var damaged = 0
    }

    private let turn = DispatchQueue(label: "millrace.operations")
    private let directory: URL
    private var lock: Int32
    private var file: Int32 = -1
    private var length: Int64 = 0
    private var pending: [QueuedOperation] = []
    private var ended = 0

    private var path: String { directory.appendingPathComponent("operations").path }

    /// Takes the directory for this process.
    init(directory: URL) throws {
        self.directory = directory
        try FileCalls.makeDirectory(directory.path)
        lock = try FileCalls.open(directory.appendingPathComponent("lock").path, O_RDWR | O_CREAT)
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            let reason = errno
            FileCalls.close(lock)
            guard reason == EWOULDBLOCK else { throw FileCalls.failure("lock", directory.path, reason) }
            throw AppError(
                .conflict, "another queue has the directory \(directory.path) open",
                hint: "Keep one queue for each person, and one process for each directory.")
        }
    }

    deinit { release() }

    /// Gives the directory back. Nothing can be added any more.
    func close() async {
        await withCheckedContinuation { continuation in
            turn.async {
                self.release()
                continuation.resume()
            }
        }
    }

    private func release() {
        if file >= 0 { FileCalls.close(file) }
        if lock >= 0 {
            flock(lock, LOCK_UN)  // also for a child that was forked and has not closed its copy yet
            FileCalls.close(lock)
        }
        (file, lock) = (-1, -1)
    }

    func open() async throws -> Found {
        try await onTurn {
            // What a crash left of a file that was to replace this one.
            unlink(self.path + ".new")
            let isNew = access(self.path, F_OK) != 0
            self.file = try FileCalls.open(self.path, O_RDWR | O_CREAT)
            if isNew { try FileCalls.syncDirectory(self.directory.path) }
            let bytes = try Data(contentsOf: URL(fileURLWithPath: self.path))
            let read = Self.read(bytes)
            self.length = Int64(read.length)
            if read.length < bytes.count { try FileCalls.truncate(self.file, self.length) }
            for record in read.records { self.note(record) }
            if self.ended > 0 { try self.compact() }
            return Found(pending: self.pending, damaged: read.damaged)
        }
    }

    /// Returns when the records are on the disk. If they cannot be written, none of them is.
    func append(_ records: [Record]) async throws {
        try await onTurn {
            var bytes = Data()
            for record in records { bytes += try Self.line(record) }
            do {
                try FileCalls.write(self.file, bytes, at: self.length)
                try FileCalls.sync(self.file)
            } catch {
                // A part of it must not be there when the next record comes.
                try FileCalls.truncate(self.file, self.length)
                throw error
            }
            self.length += Int64(bytes.count)
            for record in records { self.note(record) }
            // What has ended takes most of the file: begin another.
            if self.ended >= 256, self.ended > self.pending.count { try self.compact() }
        }
    }

    private func note(_ record: Record) {
        switch record {
        case .added(let operation): pending.append(operation)
        case .ended(let id):
            pending.removeAll { $0.id == id }
            ended += 1
        }
    }

    /// Writes what waits to another file, which takes this one's name when it is whole.
    private func compact() throws {
        var bytes = Data()
        for operation in pending { bytes += try Self.line(.added(operation)) }
        let fresh = path + ".new"
        let other = try FileCalls.open(fresh, O_RDWR | O_CREAT | O_TRUNC)
        do {
            try FileCalls.write(other, bytes, at: 0)
            try FileCalls.sync(other)
            try FileCalls.rename(fresh, path)
        } catch {
            FileCalls.close(other)
            unlink(fresh)
            throw error
        }
        FileCalls.close(file)
        (file, length, ended) = (other, Int64(bytes.count), 0)
        try FileCalls.syncDirectory(directory.path)
    }

    // MARK: a small file that is replaced as a whole

    func store(_ bytes: Data, as name: String) async throws {
        try await onTurn {
            let path = self.directory.appendingPathComponent(name).path
            try FileCalls.keep(bytes, at: path + ".new")
            try FileCalls.rename(path + ".new", path)
            try FileCalls.syncDirectory(self.directory.path)
        }
    }

    func stored(_ name: String) async throws -> Data? {
        try await onTurn {
            let file = self.directory.appendingPathComponent(name)
            return access(file.path, F_OK) == 0 ? try Data(contentsOf: file) : nil
        }
    }

    private func onTurn<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            turn.async {
                continuation.resume(
                    with: Result {
                        guard self.lock >= 0 else { throw AppError(.conflict, "the queue is closed") }
                        return try body()
                    })
            }
        }
    }

    // MARK: lines

    static func line(_ record: Record) throws -> Data {
        let json = try AppJSON.encode(record)
        let sum = String(checksum(json), radix: 16)
        return Data((String(repeating: "0", count: 8 - sum.count) + sum + " ").utf8) + json + Data([0x0A])
    }

    /// The records, and how much of the file they take. What comes after the last whole line was never acknowledged.
    static func read(_ bytes: Data) -> (records: [Record], length: Int, damaged: Int) {
        var (records, length, damaged) = ([Record](), 0, 0)
        var start = bytes.startIndex
        while let end = bytes[start...].firstIndex(of: 0x0A) {
            let line = bytes[start..<end]
            start = end + 1
            let json = line.dropFirst(9)
            if line.count > 9, let sum = UInt32(String(decoding: line.prefix(8), as: UTF8.self), radix: 16),
                sum == checksum(json), let record = try? AppJSON.decode(Record.self, from: Data(json))
            {
                records.append(record)
            } else {
                damaged += 1
            }
            length = start - bytes.startIndex
        }
        return (records, length, damaged)
    }

    /// CRC-32, as in zip files.
    static func checksum(_ bytes: Data) -> UInt32 {
        var sum = ~UInt32(0)
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
        }
        return ~sum
    }
}

/// As `{"added": {…}}` or `{"ended": "…"}`: files of earlier versions of an app must stay readable.
extension OperationLog.Record: Codable {
    private enum Key: String, CodingKey { case added, ended }

    init(from decoder: any Decoder) throws {
        let line = try decoder.container(keyedBy: Key.self)
        if let operation = try line.decodeIfPresent(QueuedOperation.self, forKey: .added) {
            self = .added(operation)
        } else {
            self = .ended(try line.decode(UUID.self, forKey: .ended))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var line = encoder.container(keyedBy: Key.self)
        switch self {
        case .added(let operation): try line.encode(operation, forKey: .added)
        case .ended(let id): try line.encode(id, forKey: .ended)
        }
    }
}
