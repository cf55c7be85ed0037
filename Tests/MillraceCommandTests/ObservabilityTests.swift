import Foundation
import Testing

@testable import MillraceCommand

@Suite struct ObservabilityTests {
    @Test func `each alert says how urgent it is and where to read on, and its test sees it fire and clear`() throws {
        let rules = try Observability.text("rules.yml").split(separator: "- alert: ").dropFirst()
        let tests = try Observability.text("rules_test.yml").split(separator: "  - name: ").dropFirst()
        #expect(rules.count > 30)
        // Some have more than one test, whose name goes on.
        let names = Set(rules.map { $0.prefix { $0.isLetter } })
        #expect(tests.allSatisfy { names.contains($0.prefix { $0.isLetter }) })
        for rule in rules {
            let name = String(rule.prefix { $0.isLetter })
            #expect(rule.contains("runbook: deploy/guides/operating.md#\(name.lowercased())\n"), "\(name)")
            #expect(rule.contains("severity: critical") != rule.contains("severity: warning"), "\(name)")
            let test = try #require(tests.first { $0.hasPrefix("\(name)\n") }, "\(name) has no test")
            let looks = test.components(separatedBy: "eval_time: ").dropFirst().map { $0.contains("exp_labels") }
            #expect(looks == [false, true, false], "\(name) is silent, fires, and is silent again")
        }
    }

    private struct Dashboard: Decodable {
        struct Panel: Decodable {
            struct Place: Decodable { let h, w, x, y: Int }
            struct Source: Decodable, Equatable { let type, uid: String }
            struct Target: Decodable {
                let refId, expr: String
                let datasource: Source
            }
            let id: Int
            let type, title: String
            let gridPos: Place
            let datasource: Source?
            let targets: [Target]?
        }
        struct Templating: Decodable {
            struct Variable: Decodable { let name, type: String }
            let list: [Variable]
        }
        let uid, title: String
        let schemaVersion: Int
        let panels: [Panel]
        let templating: Templating
    }

    @Test func `the dashboard has what Grafana needs, and no panel lies on another`() throws {
        let board = try JSONDecoder().decode(Dashboard.self, from: Data(Observability.text("dashboard.json").utf8))
        #expect(board.uid == "millrace" && !board.title.isEmpty && board.schemaVersion >= 36)
        #expect(Set(board.panels.map(\.id)).count == board.panels.count && board.panels.count > 30)
        var taken: Set<[Int]> = []
        for panel in board.panels {
            let place = panel.gridPos
            #expect(place.x >= 0 && place.w > 0 && place.h > 0 && place.x + place.w <= 24, "\(panel.title)")
            for x in place.x..<place.x + place.w {
                for y in place.y..<place.y + place.h { #expect(taken.insert([x, y]).inserted, "\(panel.title)") }
            }
            #expect(!panel.title.isEmpty)
            guard panel.type != "row" else { continue }
            let targets = try #require(panel.targets, "\(panel.title)")
            #expect(["timeseries", "stat", "heatmap"].contains(panel.type) && !targets.isEmpty)
            #expect(Set(targets.map(\.refId)).count == targets.count, "\(panel.title)")
            for target in targets {
                #expect(target.datasource == .init(type: "prometheus", uid: "${datasource}"), "\(panel.title)")
            }
        }
        // A variable that is used and not there makes every panel empty.
        let used = Set(
            board.panels.flatMap { $0.targets ?? [] }.flatMap {
                $0.expr.matches(of: /\$([a-z]+)\b/).map { String($0.1) }
            })
        #expect(used.subtracting(board.templating.list.map(\.name)).isEmpty, "\(used)")
        #expect(used.contains("job"))
    }
}
