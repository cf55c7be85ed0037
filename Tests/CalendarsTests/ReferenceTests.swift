import Foundation
import Glibc
import Testing

@testable import Calendars

/// Every zone of the system, and expressions that hit every gap and overlap, against Python's zoneinfo: see Reference/fires.py.
/// One year of fires is compared and the days of ten; with `MILLRACE_YEARS=10` ten, and of fifty.
/// Postgres judges the days near each change of all fifty at each run: see DayStartTests.
@Suite struct ReferenceTests {
    private static let years = ProcessInfo.processInfo.environment["MILLRACE_YEARS"].flatMap { Int($0) } ?? 1
    private static let python = ["/usr/bin/python3", "/usr/local/bin/python3"].first { (path: String) in
        access(path, X_OK) == 0
    }
    private static let files = ZoneFiles(directory: "/usr/share/zoneinfo")

    @Test func `fires are those of an independent calculation, none twice, none missing`() async throws {
        guard let python = Self.python else {
            print("SKIPPED: there is no python3, and without it nothing to compare the schedules of all zones with")
            return
        }
        let names = Self.files.names
        #expect(names.count > 400, "tzdata is not installed")
        let began = ContinuousClock.now
        // Two at once; zones with the same file stay together, for their work is done once.
        let halves = Dictionary(grouping: names) { (try? Self.files.zone($0))?.line.times.count.isMultiple(of: 2) }
        let totals = try await withThrowingTaskGroup(of: Totals.self) { group in
            for half in halves.values {
                group.addTask {
                    let answer = try await Self.ask(python, "fires.py", "2026", "\(Self.years)", about: half)
                    return try await Self.aside { try Self.compare(answer) }
                }
            }
            return try await group.reduce(into: Totals()) { $0.add($1) }
        }
        #expect(totals.zones == names.count)
        #expect(totals.fires > Self.years * 100_000)
        print(
            "compared \(totals.zones) zones, \(totals.expressions.count) expressions, \(totals.fires) fires",
            "from 2026 to \(2026 + Self.years) in \(began.duration(to: .now)); \(totals.differences) differences")
    }

    /// See Reference/days.py.
    @Test func `every day of every zone begins when an independent calculation says`() async throws {
        guard let python = Self.python else {
            print("SKIPPED: there is no python3, and without it nothing to compare the days of all zones with")
            return
        }
        let names = Self.files.names
        let (first, last) = Self.years > 1 ? (1990, 2040) : (2020, 2030)
        let answer = try await Self.ask(python, "days.py", "\(first)", "\(last)", about: names)
        let (days, compared, odd) = try await Self.aside { try Self.compareDays(answer) }
        #expect(compared == names.count)
        #expect(days > names.count * (last - first) * 180, "zones with the same file are compared once")
        print("compared the beginnings of \(days) days in \(compared) zones from \(first) to \(last)")
        for line in odd { print(line) }
    }

    private static func compareDays(_ answer: [UInt8]) throws -> (days: Int, zones: Int, odd: [String]) {
        var (days, compared, differences) = (0, 0, 0)
        var zone = Zone.utc
        var odd: [(kind: String, day: String, zones: [String])] = []
        for line in answer.split(separator: 10) {
            let parts = line.split(separator: 9).map { String(decoding: $0, as: UTF8.self) }
            switch parts[0] {
            case "zone":
                zone = try files.zone(parts[1])
                compared += 1
            case "same":
                let other = try files.zone(parts[1])
                #expect(other.line == zone.line && other.horizon == zone.horizon, "\(zone.name) and \(other.name)")
            default:
                let (first, count, after) = (try #require(Int(parts[1])), try #require(Int(parts[2])), Int64(parts[3]))
                for number in first..<first + count {
                    let date = CivilDate(dayNumber: number)
                    let begin = zone.startOfDay(date)
                    days += 1
                    if begin - Int64(number) * 86_400 != after {
                        differences += 1
                        if differences < 10 { Issue.record("\(zone.name): \(date) begins at \(begin)") }
                    }
                    // Far from any change there is nothing odd, and most days are.
                    guard count < 3 || number == first || number == first + count - 1 else { continue }
                    let midnight = Int64(number) * 86_400
                    let kind =
                        if !zone.has(date) { "never was" } else if zone.wall(at: begin) != midnight {
                            "has no midnight"
                        } else if zone.instants(showing: midnight).count == 2 { "has two midnights" } else { "" }
                    guard !kind.isEmpty else { continue }
                    if let known = odd.firstIndex(where: { $0.kind == kind && $0.day == "\(date)" }) {
                        odd[known].zones.append(zone.name)
                    } else {
                        odd.append((kind, "\(date)", [zone.name]))
                    }
                }
            }
        }
        let lines = odd.sorted { ($0.day, $0.kind) < ($1.day, $1.kind) }.map { entry in
            "\(entry.day) \(entry.kind): \(entry.zones.joined(separator: ", "))"
        }
        return (days, compared, lines)
    }

    private struct Totals {
        var zones = 0
        var expressions: Set<String> = []
        var fires = 0
        var differences = 0

        mutating func add(_ other: Totals) {
            zones += other.zones
            expressions.formUnion(other.expressions)
            fires += other.fires
            differences += other.differences
        }
    }

    private static func compare(_ answer: [UInt8]) throws -> Totals {
        var totals = Totals()
        var zone = Zone.utc
        var known: [String: CronExpression] = [:]
        for line in answer.split(separator: 10) {
            let parts = line.split(separator: 9, omittingEmptySubsequences: false)
            func text(_ part: Int) -> String { String(decoding: parts[part], as: UTF8.self) }
            func number(_ part: Int) throws -> Int64 { try #require(Int64(text(part))) }
            if text(0) == "zone" {
                zone = try files.zone(text(1))
                totals.zones += 1
                continue
            }
            if text(0) == "same" {
                let other = try files.zone(text(1))
                #expect(other.line == zone.line && other.horizon == zone.horizon, "\(zone.name) and \(other.name)")
                continue
            }
            let expression: CronExpression
            if let read = known[text(1)] { expression = read } else { expression = try CronExpression(text(1)) }
            known[text(1)] = expression
            let (from, until) = (try number(2), try number(3))
            let same: Bool
            if text(0) == "window" {
                let ours = fires(of: expression, after: from, until: until, in: zone)
                totals.fires += ours.count
                same = Array(ours.map(String.init).joined(separator: " ").utf8) == Array(parts[4])
            } else {
                // Python sends a checksum here, because the fires of all zones over all years are too many to send.
                let ours = fires(of: expression, after: from, until: until, in: zone)
                totals.fires += ours.count
                let modulus: Int64 = (1 << 61) - 1
                let sum = ours.enumerated().reduce(Int64(0)) { ($0 + Int64($1.offset + 1) * $1.element) % modulus }
                same = try number(4) == Int64(ours.count) && sum == number(5)
            }
            if !same {
                totals.differences += 1
                if totals.differences < 10 { Issue.record("\(zone.name): \(text(1)) from \(from) to \(until)") }
            }
        }
        totals.expressions = Set(known.keys)
        return totals
    }

    private static func fires(
        of expression: CronExpression, after from: Int64, until: Int64, in zone: Zone
    ) -> [Int64] {
        var found: [Int64] = []
        var last = from
        while let next = expression.next(after: last, in: zone), next <= until {
            found.append(next)
            last = next
        }
        return found
    }

    /// Long work runs on its own low-priority thread, because other tests run at the same time and depend on the clock.
    private static func aside<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                _ = nice(10)  // on Linux of this thread alone
                continuation.resume(with: Result(catching: work))
            }
        }
    }

    private static func ask(_ python: String, _ script: String, _ words: String..., about names: [String]) async throws
        -> [UInt8]
    {
        let directory = FileManager.default.temporaryDirectory
        let input = directory.appending(path: "millrace-zones-\(UUID().uuidString)")
        let output = directory.appending(path: "millrace-fires-\(UUID().uuidString)")
        defer { for file in [input, output] { try? FileManager.default.removeItem(at: file) } }
        try Data(names.joined(separator: "\n").utf8).write(to: input)
        try Data().write(to: output)
        let process = Process()
        process.executableURL = URL(filePath: python)
        process.arguments =
            [
                URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Reference/\(script)").path
            ] + words
        process.environment = ["PYTHONTZPATH": files.directory]
        process.standardInput = try FileHandle(forReadingFrom: input)
        process.standardOutput = try FileHandle(forWritingTo: output)
        let status = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do {
                try process.run()
            } catch {
                continuation.resume(throwing: error)
            }
        }
        #expect(status == 0, "the script failed; what it said is above")
        return Array(try Data(contentsOf: output))
    }
}
