import Foundation
import TestSupport
import Testing

/// A short part of `load checkins --part strike`, whose whole run takes a quarter of an hour, and its neighbours.
@Suite struct AlarmStrikeTests {
    private struct Report: Decodable {
        struct Cell: Decodable {
            var step: String
            var fault: String
            var struck: String?
            var alarms: Int
            var notices: Int
            var duplicates: Int
            var findings: Int
        }

        struct Finding: Decodable {
            var rule: String
            var detail: String
        }

        var cells: [Cell]
        var findings: [Finding]
    }

    private func strike(_ more: [String]) async throws -> (code: Int32, report: Report) {
        let process = try MillraceProcess(
            ["load", "checkins", "--part", "strike", "--people", "2", "--json", "--quiet"] + more, database: "")
        let code = try await process.ended(within: .seconds(900))
        let output = process.output
        let start = try #require(output.firstRange(of: "{"), "\(output)")
        return (code, try JSONDecoder().decode(Report.self, from: Data(output[start.lowerBound...].utf8)))
    }

    @Test func `a worker killed at a provider's answer, and a Postgres that crashes, leave nobody untold`()
        async throws
    {
        let (code, report) = try await strike([
            "--step", "handed", "--fault", "kill", "--fault", "crash",
        ])
        #expect(code == 0 && report.findings.isEmpty, "\(report.findings)")
        #expect(
            report.cells.map { "\($0.step) \($0.fault)" } == [
                "handed kill", "handed crash",
            ])
        for cell in report.cells {
            #expect(cell.struck?.hasPrefix("strike-") == true && cell.alarms >= 2 && cell.notices >= 8, "\(cell)")
        }
        // The provider had taken it, and nobody could know.
        #expect(report.cells[0].duplicates >= 1)
    }

    @Test func `a timer that does not look whether the deadline has moved is found out`() async throws {
        let (code, report) = try await strike(["--step", "expiring", "--fault", "pause", "--break", "deaf"])
        #expect(code == 1)
        #expect(report.findings.contains { $0.rule == "a check-in in time raises no alarm" }, "\(report.findings)")
    }

    @Test func `beside a campaign everybody is told, and the campaign goes on; what is to be kept is kept`()
        async throws
    {
        let process = try MillraceProcess(
            ["load", "checkins", "--campaign", "300", "--watches", "40", "--for", "2s", "--json", "--keep"],
            database: "")
        let code = try await process.ended(within: .seconds(600))
        let lines = process.output.split(separator: "\n")
        let kept = try #require(lines.first { $0.hasPrefix("kept: ") }?.dropFirst(6), "\(process.output)")
        #expect(FileManager.default.fileExists(atPath: "\(kept)/strike-1.log"))
        try FileManager.default.removeItem(atPath: String(kept))
        #expect(code == 0, "\(process.output)")
        #expect(process.output.contains(#""watches": 40"#) && process.output.contains(#""duplicates": 0"#))
        #expect(process.output.contains(#""campaign_left""#))
    }
}
