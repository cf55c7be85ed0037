import Glibc
import Synchronization

/// A file read in pieces, so that its size does not matter. It is closed when its last owner releases it.
package final class FileChunks: Sendable {
    private let descriptor: Int32
    private let owns: Bool
    private let canned: Mutex<[[UInt8]]>

    /// - Parameter path: `-` is standard input.
    package init(path: String) throws(FileProblem) {
        canned = Mutex([])
        guard path != "-" else {
            (descriptor, owns) = (STDIN_FILENO, false)
            return
        }
        descriptor = open(PathBytes.of(path), O_RDONLY | O_CLOEXEC)
        owns = true
        guard descriptor >= 0 else { throw FileProblem(complaint: Descriptor.sentence(errno)) }
        var info = stat()
        if fstat(descriptor, &info) == 0, info.st_mode & S_IFMT == S_IFDIR {
            throw FileProblem(complaint: "is a directory")
        }
    }

    /// A file that is open already, and is closed with this.
    package init(descriptor: Int32) {
        canned = Mutex([])
        (self.descriptor, owns) = (descriptor, true)
    }

    /// Pieces that are there already, for tests.
    package init(_ pieces: [[UInt8]]) {
        canned = Mutex(pieces.filter { !$0.isEmpty })
        (descriptor, owns) = (-1, false)
    }

    deinit {
        if owns, descriptor >= 0 { close(descriptor) }
    }

    /// The next piece; empty at the end.
    package func next() throws(FileProblem) -> [UInt8] {
        guard descriptor >= 0 else { return canned.withLock { $0.isEmpty ? [] : $0.removeFirst() } }
        var piece = [UInt8](repeating: 0, count: 262_144)
        while true {
            let count = read(descriptor, &piece, piece.count)
            if count >= 0 { return Array(piece.prefix(count)) }
            if errno != EINTR { throw FileProblem(complaint: Descriptor.sentence(errno)) }
        }
    }
}

/// Lines out of chunks, with their numbers from 1; neither line feed nor carriage return belongs to them.
package struct Lines: ~Copyable {
    /// Far more than a job may have: a longer line means that it is not a file of jobs.
    package static let longest = 8 << 20
    private let chunks: FileChunks
    private var buffer: [UInt8] = []
    private var start = 0
    private var searched = 0
    package private(set) var number = 0
    private var ended = false

    package init(_ chunks: FileChunks) { self.chunks = chunks }

    package mutating func next() throws(FileProblem) -> [UInt8]? {
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                defer {
                    start = end + 1
                    searched = start
                }
                return line(buffer[start..<end])
            }
            searched = buffer.count
            if ended {
                guard start < buffer.count else { return nil }
                defer {
                    buffer = []
                    (start, searched) = (0, 0)
                }
                return line(buffer[start...])
            }
            guard buffer.count - start <= Self.longest else {
                throw FileProblem(complaint: "line \(number + 1) is longer than \(Humane.bytes(Self.longest))")
            }
            let piece = try chunks.next()
            ended = piece.isEmpty
            buffer.removeSubrange(..<start)
            searched -= start
            start = 0
            buffer += piece
        }
    }

    private mutating func line(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        number += 1
        return Array(bytes.last == UInt8(ascii: "\r") ? bytes.dropLast() : bytes)
    }
}
