import FoundationEssentials
import Glibc
import MillraceJobs

/// A file to which runs of practice.mark append when they began: 16 bytes each, the job's n and the monotonic clock in
/// nanoseconds, which all processes of a machine share. Written at once, so that nothing is lost with a process.
package struct PracticeMarks: Sendable {
    package struct Mark: Sendable, Equatable {
        package var n: Int64
        package var nanoseconds: Int64
    }

    private let file: Int32

    /// Opens or makes the file; nil if that cannot be.
    package init?(path: String) {
        file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { return nil }
    }

    package func write(_ n: Int64) {
        var record = (n.littleEndian, Self.now().littleEndian)
        _ = Glibc.write(file, &record, 16)
    }

    /// What was written from this record on.
    package func read(from first: Int) -> [Mark] {
        var marks: [Mark] = []
        var buffer = [Int64](repeating: 0, count: 2 * 4096)
        while true {
            let got = pread(file, &buffer, buffer.count * 8, (first + marks.count) * 16)
            guard got >= 16 else { return marks }
            for index in 0..<got / 16 {
                marks.append(
                    Mark(
                        n: Int64(littleEndian: buffer[2 * index]),
                        nanoseconds: Int64(littleEndian: buffer[2 * index + 1])))
            }
        }
    }

    package static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

extension Practice {
    struct MarkJob: Job {
        static let kind = "practice.mark"
        var n: Int64
        /// How long it takes after that.
        var ms: Int?
    }

    /// practice.mark: notes when it began, if there is somewhere to note it.
    package static func marker(_ marks: PracticeMarks?) -> Handler {
        Handler(MarkJob.self) { job, _ in
            marks?.write(job.n)
            if let ms = job.ms { try await Task.sleep(for: .milliseconds(ms)) }
            return .done
        }
    }
}
