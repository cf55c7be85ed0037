import CommandKit
import FoundationEssentials
package import Glibc

/// Reads /proc for processes on this machine.
package enum ProcessTable {
    package static let ticksPerSecond = Double(sysconf(Int32(_SC_CLK_TCK)))

    package struct Ticks: Sendable {
        package var parent: pid_t
        /// Processor time of the process, and of the children it has waited for.
        package var own: Double
        package var children: Double
    }

    package static func ticks(of pid: pid_t) -> Ticks? {
        // The name, in parentheses, may hold anything.
        let text = text("/proc/\(pid)/stat")
        guard let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ")
        guard fields.count > 14, let parent = pid_t(fields[1]),
            let user = Double(fields[11]), let system = Double(fields[12]),
            let childUser = Double(fields[13]), let childSystem = Double(fields[14])
        else { return nil }
        return Ticks(parent: parent, own: user + system, children: childUser + childSystem)
    }

    /// In bytes: what it has resident, and the most it ever had. Zeros when it is gone.
    package static func resident(of pid: pid_t) -> (now: Int, most: Int) {
        var found = (now: 0, most: 0)
        for line in text("/proc/\(pid)/status").split(separator: "\n") {
            let words = line.split(whereSeparator: \.isWhitespace)
            guard words.count >= 2, let kilobytes = Int(words[1]) else { continue }
            if words[0] == "VmRSS:" { found.now = kilobytes * 1024 }
            if words[0] == "VmHWM:" { found.most = kilobytes * 1024 }
        }
        return found
    }

    package static func name(of pid: pid_t) -> String {
        text("/proc/\(pid)/comm").trimmingCharacters { $0.isNewline }
    }

    package static func all() -> [pid_t] {
        ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { pid_t($0) }
    }

    /// Empty when the process is gone.
    package static func text(_ path: String) -> String {
        guard let file = fopen(path, "r") else { return "" }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while case let got = fread(&chunk, 1, chunk.count, file), got > 0 { bytes += chunk[..<got] }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension String {
    fileprivate func trimmingCharacters(_ condition: (Character) -> Bool) -> String {
        var text = self[...]
        while let last = text.last, condition(last) { text.removeLast() }
        return String(text)
    }
}
