import Glibc

/// Why a zone was not found.
package enum ZoneError: Error, Sendable, Equatable, CustomStringConvertible {
    /// - near: a name that may have been meant.
    case unknown(String, near: String?)
    case noFiles(directory: String)
    case unreadable(String, reason: String)

    package var description: String {
        switch self {
        case .unknown(let name, let near):
            "there is no time zone \"\(name)\"" + (near.map { "; did you mean \($0)?" } ?? "")
        case .noFiles(let directory):
            "there are no time zones in \(directory): install the package tzdata, or set TZDIR"
        case .unreadable(let name, let reason): "the time zone \(name) cannot be read: \(reason)"
        }
    }
}

/// The system's zone files. Each question reads them again, so that an update of tzdata counts without a restart.
package struct ZoneFiles: Sendable {
    package let directory: String

    package init(directory: String) {
        self.directory = directory
    }

    /// `TZDIR`, else where every Linux has them.
    package static var system: ZoneFiles {
        let given = getenv("TZDIR").map { String(cString: $0) } ?? ""
        return ZoneFiles(directory: given.isEmpty ? "/usr/share/zoneinfo" : given)
    }

    /// UTC is there without any file.
    package func zone(_ name: String) throws(ZoneError) -> Zone {
        if name == "UTC" { return .utc }
        guard Self.isName(name) else { throw .unknown(Self.harmless(name), near: near(name)) }
        guard let bytes = Self.read("\(directory)/\(name)") else {
            let names = names
            throw names.isEmpty ? .noFiles(directory: directory) : .unknown(name, near: Self.near(name, among: names))
        }
        do throws(ZoneFile.Malformed) {
            return try ZoneFile.read(bytes, name: name)
        } catch {
            throw .unreadable(name, reason: error.reason)
        }
    }

    /// Every zone there is, in order; not the variants that count leap seconds.
    package var names: [String] {
        var found: [String] = []
        collect(below: "", into: &found)
        return found.sorted()
    }

    private static let ignored: Set<String> = ["posix", "right", "posixrules", "localtime", "Factory"]

    private func collect(below path: String, into found: inout [String]) {
        guard let stream = opendir(path.isEmpty ? directory : "\(directory)/\(path)") else { return }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { start in
                start.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard !Self.ignored.contains(name), Self.isName(name) else { continue }
            let whole = path.isEmpty ? name : "\(path)/\(name)"
            var info = stat()
            guard stat("\(directory)/\(whole)", &info) == 0 else { continue }
            if info.st_mode & S_IFMT == S_IFDIR {
                // Deeper than any zone: a loop of links.
                if whole.split(separator: "/").count < 4 { collect(below: whole, into: &found) }
            } else if Self.read("\(directory)/\(whole)", limit: 4)?.elementsEqual("TZif".utf8) == true {
                found.append(whole)
            }
        }
    }

    /// Names only, never a way out of the directory: no dots, no empty parts.
    private static func isName(_ name: String) -> Bool {
        guard (1...64).contains(name.utf8.count) else { return false }
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        return !ignored.contains(name) && parts.first != "posix" && parts.first != "right"
            && parts.allSatisfy { part in
                !part.isEmpty
                    && part.utf8.allSatisfy { byte in
                        switch byte {
                        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"),
                            UInt8(ascii: "+"):
                            true
                        default: false
                        }
                    }
            }
    }

    private static func harmless(_ name: String) -> String {
        String(name.prefix(64).map { $0.isASCII && !$0.isWhitespace && $0 != "\"" && $0 >= " " ? $0 : "?" })
    }

    private func near(_ name: String) -> String? {
        Self.near(name, among: names)
    }

    /// A name that differs only in case and spaces, or the city alone.
    private static func near(_ name: String, among names: [String]) -> String? {
        let wanted = name.lowercased().map { $0 == " " ? "_" : String($0) }.joined()
        guard !wanted.isEmpty else { return nil }
        if let same = names.first(where: { $0.lowercased() == wanted }) { return same }
        let city = wanted.split(separator: "/").last ?? wanted[...]
        return names.first { $0.contains("/") && ($0.lowercased().split(separator: "/").last ?? "") == city }
    }

    /// nil: not there, or no plain file.
    private static func read(_ path: String, limit: Int = 1 << 20) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var info = stat()
        guard fstat(descriptor, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return nil }
        var bytes = [UInt8](repeating: 0, count: min(limit, Int(info.st_size)))
        var filled = 0
        while filled < bytes.count {
            let count = bytes.withUnsafeMutableBytes { buffer in
                Glibc.read(descriptor, buffer.baseAddress.map { $0 + filled }, buffer.count - filled)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            filled += count
        }
        return Array(bytes.prefix(filled))
    }
}
