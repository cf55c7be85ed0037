@testable import Calendars

/// The parsers of outside bytes: run by deploy/fuzz, and by a test with every file under Tests/Corpora.
enum Target: String, CaseIterable {
    case cron, zone, arguments, batch, duration, instant, settings, connection, template, token, keyset, body, request

    /// Reads the bytes; returns a complaint if accepted bytes do not survive being written and read again.
    func take(_ bytes: [UInt8]) -> String? {
        switch self {
        case .cron: cron(bytes)
        case .zone: zone(bytes)
        case .arguments: arguments(bytes)
        case .batch: batch(bytes)
        case .duration: duration(bytes)
        case .instant: instant(bytes)
        case .settings: settings(bytes)
        case .connection: connection(bytes)
        case .template: template(bytes)
        case .token: token(bytes)
        case .keyset: keySet(bytes)
        case .body: body(bytes)
        case .request: request(bytes)
        }
    }

    /// Instants in and far outside of every calendar.
    private static let instants: [Int64] = [
        -62_135_596_800, -2_208_988_801, -1, 0, 1_711_846_800, 1_729_990_800, 4_102_444_800, 253_402_300_799,
    ]

    /// A zone in the south, with summer time, that needs no file.
    private static let southern = {
        var bytes = Array("TZif2".utf8) + [UInt8](repeating: 0, count: 15)
        let counts: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]
        bytes += counts + [0, 0, 0, 0, 0, 0, 0]
        bytes += Array("TZif2".utf8) + [UInt8](repeating: 0, count: 15) + counts + [0, 0, 0x2A, 0x30, 0, 0, 0]
        bytes += Array("\nNZST-12NZDT,M9.5.0,M4.1.0/3\n".utf8)
        return try? ZoneFile.read(bytes, name: "southern")
    }()

    private func cron(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let timetable = try? Timetable(text) else { return nil }
        guard let southern = Self.southern else { return "the zone of this test cannot be read" }
        for instant in Self.instants {
            for zone in [Zone.utc, southern] {
                guard let next = timetable.next(after: instant, in: zone, anchor: 0) else { continue }
                guard next > instant else { return "after \(instant) comes \(next)" }
                guard timetable.next(after: next - 1, in: zone, anchor: 0) == next || next - 1 < 0 else {
                    return "\(next) fires after \(instant), and not after \(next - 1)"
                }
            }
        }
        return nil
    }

    private func zone(_ bytes: [UInt8]) -> String? {
        guard let zone = try? ZoneFile.read(bytes, name: "x") else { return nil }
        for instant in Self.instants + zone.line.times.prefix(40) {
            let segment = zone.segment(at: instant)
            guard segment.start <= instant, instant < segment.end else { return "\(instant) is in no stretch" }
            let wall = zone.wall(at: instant)
            guard zone.instants(showing: wall).contains(instant) else { return "\(wall) is not shown at \(instant)" }
            _ = zone.first(showing: wall)
            guard zone.latestWall(upTo: instant) >= wall else {
                return "the latest wall time is before the present one"
            }
        }
        return nil
    }
}
