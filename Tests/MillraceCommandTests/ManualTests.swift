import Foundation
import Testing

@testable import MillraceCommand

@Suite struct ManualTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "deploy")

    private static func headings() throws -> [String] {
        let text = try String(contentsOf: folder.appending(path: "guides/operating.md"), encoding: .utf8)
        return text.split(separator: "\n").filter { $0.hasPrefix("### ") }.map { String($0.dropFirst(4)) }
    }

    @Test func `every alarm, check and alert has its heading in the manual, and no other has`() throws {
        let alerts = try Observability.alerts()
        #expect(alerts.count > 30)
        let known =
            Alarm.all(with: Rooms.all).map(\.name) + Subject.allCases.map(\.rawValue)
            + Rooms.all.flatMap(\.checks).map(\.subject) + alerts
        let headings = try Self.headings()
        #expect(Set(headings) == Set(known))
        #expect(headings.count == Set(headings).count)
    }

    @Test func `the table of settings has every setting`() throws {
        let text = try String(contentsOf: Self.folder.appending(path: "README.md"), encoding: .utf8)
        let named = Set(text.matches(of: /`([A-Z][A-Z0-9_]+)`/).map { String($0.1) })
        let all = Set(Setting.all.map(\.environment).filter { !$0.isEmpty })
        #expect(all.count > 80)
        #expect(all.subtracting(named).isEmpty, "\(all.subtracting(named).sorted())")
    }

    @Test func `the example of an environment sets only what there is, with values that are taken`() throws {
        let text = try String(contentsOf: Self.folder.appending(path: "millrace.env.example"), encoding: .utf8)
        var environment: [String: String] = [:]
        var named: Set<String> = []
        for line in text.split(separator: "\n") {
            let isCommentedOut = line.hasPrefix("#") && line.dropFirst().first?.isUppercase == true
            guard !line.hasPrefix("#") || isCommentedOut, let equals = line.firstIndex(of: "=") else { continue }
            let name = String(line[..<equals].drop { $0 == "#" })
            guard name.allSatisfy({ $0.isUppercase || $0 == "_" }) else { continue }
            named.insert(name)
            if !isCommentedOut { environment[name] = String(line[line.index(after: equals)...]) }
        }
        let known = Set(Setting.all.flatMap { [$0.environment, $0.fileTwin].compactMap(\.self) })
        #expect(named.isSubset(of: known), "\(named.subtracting(known))")
        #expect(named.count >= 10)
        let surroundings = Surroundings(
            environment: environment, workingDirectory: "/", isWritableDirectory: { _ in false },
            read: { _, _ throws(FileProblem) in throw FileProblem(complaint: "no file") },
            chunks: { _ throws(FileProblem) in FileChunks([]) }, ask: { _ in nil })
        let settings = Settings.load(parsed: nil, surroundings: surroundings)
        #expect(settings.problems.isEmpty, "\(settings.problems)")
        #expect(settings.warnings.isEmpty, "\(settings.warnings)")
    }

    @Test func `the packages have a unit for each role, which they start again and stop`() throws {
        func text(_ file: String) throws -> String {
            try String(contentsOf: Self.folder.appending(path: file), encoding: .utf8)
        }
        let packed = try text("packages")
        for role in ["worker", "gateway", "console", "waker"] {
            let unit = role == "worker" ? "millrace" : "millrace-\(role)"
            #expect(packed.contains("\nunit \(unit) \(role) \"Millrace \(role)\"\n"), "\(role)")
            for script in ["postinst", "prerm", "postrm"] {
                let list = try text("packages.d/\(script)").firstMatch(of: /for unit in ([a-z -]+);/)?.1 ?? ""
                #expect(list.split(separator: " ").contains(Substring(unit)), "\(script) knows no \(unit)")
            }
        }
    }

    @Test func `the unit gives a drain the time it needs`() throws {
        let text = try String(contentsOf: Self.folder.appending(path: "millrace.service"), encoding: .utf8)
        let lines = text.split(separator: "\n")
        func value(_ name: String) -> String? {
            lines.first { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.count + 1)) }
        }
        let drain = try #require(Setting.drainTimeout.fallback.flatMap(DurationText.read))
        let stop = try #require(value("TimeoutStopSec").flatMap { Int($0) })
        #expect(.seconds(stop) >= drain + .seconds(25))
        #expect(value("Type") == "notify")
        #expect(try #require(value("WatchdogSec").flatMap { Int($0) }) >= 20)
    }
}
