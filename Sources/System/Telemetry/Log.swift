package import FoundationEssentials
import Glibc
import JSON

/// Structured lines on stderr: a constant message, and data under dotted keys.
package struct Log: Sendable {
    package enum Level: Int, Sendable, Comparable, CaseIterable {
        case debug, info, warning, error
        package static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
    }

    package enum Format: String, Sendable, CaseIterable {
        case text, json
    }

    package struct Line: Sendable {
        package var at: Date
        package var level: Level
        package var message: String
        package var metadata: [(key: String, value: String)]
    }

    private let threshold: Level
    private let sink: @Sendable (Line) -> Void
    private var metadata: [(key: String, value: String)] = []

    package init(threshold: Level = .info, sink: @escaping @Sendable (Line) -> Void) {
        self.threshold = threshold
        self.sink = sink
    }

    /// One line per message to stderr, written at once so that lines of many threads do not mix.
    package static func standardError(threshold: Level = .info, format: Format = .text) -> Log {
        Log(threshold: threshold) { line in
            var bytes = Array((format == .text ? line.text : line.json).utf8)
            bytes.append(UInt8(ascii: "\n"))
            _ = bytes.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
        }
    }

    package static let silent = Log { _ in }

    /// The same log with more data on each line.
    package func with(_ key: String, _ value: some CustomStringConvertible) -> Log {
        var log = self
        log.metadata.append((key, value.description))
        return log
    }

    package func debug(_ message: StaticString, _ data: @autoclosure () -> [(String, String)] = []) {
        write(.debug, message.description, data)
    }
    package func info(_ message: StaticString, _ data: @autoclosure () -> [(String, String)] = []) {
        write(.info, message.description, data)
    }
    package func warning(_ message: StaticString, _ data: @autoclosure () -> [(String, String)] = []) {
        write(.warning, message.description, data)
    }
    package func error(_ message: StaticString, _ data: @autoclosure () -> [(String, String)] = []) {
        write(.error, message.description, data)
    }

    /// For messages of a handler's author.
    package func write(_ level: Level, _ message: String, _ data: () -> [(String, String)]) {
        guard level >= threshold else { return }
        sink(
            Line(
                at: Date(), level: level, message: message, metadata: metadata + data().map { (key: $0.0, value: $0.1) }
            ))
    }
}

extension Log.Line {
    package var text: String {
        let data = metadata.map { " \($0.key)=\(Self.quotedIfNeeded($0.value))" }.joined()
        return "\(at.formatted(.iso8601)) \("\(level)".uppercased()) \(Self.oneLine(message))\(data)"
    }

    package var json: String {
        var pairs = [("at", at.formatted(.iso8601)), ("level", "\(level)"), ("message", message)]
        pairs += metadata.map { ($0.key, $0.value) }
        return JSONText.object(pairs.map { ($0.0, JSONText.quoted($0.1)) })
    }

    /// A value from outside must not begin a new line.
    private static func oneLine(_ text: String) -> String {
        String(text.map { $0.isNewline ? " " : $0 })
    }

    private static func quotedIfNeeded(_ value: String) -> String {
        let plain = value.utf8.allSatisfy {
            $0 > 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "=") && $0 != 0x7F
        }
        return plain && !value.isEmpty ? value : JSONText.quoted(value)
    }
}
