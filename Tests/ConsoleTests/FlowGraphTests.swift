import Foundation
import Postgres
import TestSupport
import Testing

@testable import Console

/// A flow as a drawing in layers.
@Suite(.timeLimit(.minutes(10))) struct FlowGraphTests {
    private static func graph(_ jobs: ClosedRange<Int>, _ pairs: [(Int, Int)], made: [(Int, Int)] = []) -> FlowGraph {
        FlowGraph(
            nodes: jobs.map { FlowGraph.Node(job: $0, kind: "kind.\($0)", state: "succeeded") },
            edges: pairs.map { FlowGraph.Edge(from: $0.0, to: $0.1) }
                + made.map { FlowGraph.Edge(from: $0.0, to: $0.1, isMade: true) })
    }

    private static func left(of job: Int, in drawing: FlowGraph.Drawing) -> Double? {
        drawing.boxes.first { $0.node.job == job }?.x
    }

    @Test func `each job stands behind all that it waits for`() throws {
        let drawing = Self.graph(1...5, [(1, 2), (1, 3), (2, 4), (3, 4), (1, 4)]).drawing()
        let lefts = (1...5).map { Self.left(of: $0, in: drawing) }
        let step = FlowGraph.boxWidth + 56
        #expect(lefts == [6, 6 + step, 6 + step, 6 + 2 * step, 6])
        // The line that passes the second layer does so between its boxes.
        let long = try #require(drawing.lines.first { $0.edge.from == 1 && $0.edge.to == 4 })
        #expect(long.points.count == 4)
        for box in drawing.boxes where box.x == 6 + step {
            #expect(long.points[1].y <= box.y || long.points[1].y >= box.y + FlowGraph.boxHeight, "\(box)")
        }
    }

    @Test func `a run that waits for jobs that it made is no circle`() {
        let graph = Self.graph(1...3, [(2, 1), (3, 1)], made: [(1, 2), (1, 3)])
        #expect(graph.forward().map { [$0.from, $0.to] } == [[1, 2], [1, 3]])
        let html = graph.html(here: 1)
        #expect(html.components(separatedBy: "class=\"wire made\"").count == 3)
        #expect(html.contains("a broken one to a job that a run made."))
    }

    @Test(arguments: 1...20) func `no boxes lie on each other, and the drawing does not depend on the order`(seed: Int)
    {
        var random = SeededRandom(seed)
        let count = Int.random(in: 2...80, using: &random)
        var pairs: Set<FlowGraph.Edge> = []
        for _ in 0..<Int.random(in: 1...160, using: &random) {
            let from = Int.random(in: 1..<count, using: &random)
            pairs.insert(FlowGraph.Edge(from: from, to: Int.random(in: (from + 1)...count, using: &random)))
        }
        let nodes = (1...count).map { FlowGraph.Node(job: $0, kind: "k", state: "ready") }
        let graph = FlowGraph(nodes: nodes, edges: Array(pairs))
        let drawing = graph.drawing()
        #expect(drawing.boxes.count == count && drawing.lines.count == pairs.count)
        for (index, one) in drawing.boxes.enumerated() {
            #expect(one.x >= 0 && one.x + FlowGraph.boxWidth <= drawing.width)
            #expect(one.y >= 0 && one.y + FlowGraph.boxHeight <= drawing.height)
            for other in drawing.boxes[(index + 1)...] where one.x == other.x {
                #expect(abs(one.y - other.y) >= FlowGraph.boxHeight, "\(one.node.job) and \(other.node.job)")
            }
        }
        for line in drawing.lines {
            let xs = line.points.map(\.x)
            #expect(xs == xs.sorted(), "a line goes from left to right")
        }
        let other = FlowGraph(nodes: nodes.shuffled(using: &random), edges: pairs.shuffled(using: &random))
        #expect(other.html(here: 1) == graph.html(here: 1))
    }

    @Test func `long names are cut, wide letters count twice, and what users wrote is text`() {
        #expect(FlowGraph.cut("report.build") == "report.build")
        #expect(FlowGraph.cut(String(repeating: "x", count: 40)) == String(repeating: "x", count: 21) + "…")
        #expect(FlowGraph.cut(String(repeating: "書", count: 40)) == String(repeating: "書", count: 10) + "…")
        let evil = FlowGraph.Node(job: 1, kind: Seed.script, state: "dead")
        let html = FlowGraph(nodes: [evil], edges: []).html(here: 1)
        #expect(!html.contains("<script") && !html.contains("\" onfocus"))
        #expect(html.contains("aria-label=\"Job 1, &quot; onfocus=hacked=1"))
    }

    @Test func `a job's page draws its flow with links and states, and a large one has its table`() async throws {
        try await ConsoleWorld.with { world in
            let job = try await world.job("blocked", kind: "image.resize")
            let before = try #require(
                try await world.connection.value("select pred from millrace.edge where succ = \(job)"))
            let page = try await world.get("/console/jobs/\(job)?flow=yes").body
            #expect(page.contains("<svg role=\"group\" aria-label=\"2 jobs of the flow: 1 blocked, 1 ready\""))
            #expect(
                page.contains("<a href=\"/console/jobs/\(before)\" aria-label=\"Job \(before), image.resize, ready\">"))
            #expect(page.contains("class=\"here\" aria-current=\"true\"") && page.contains("Comes after"))
            try await world.connection.run(
                """
                select millrace.enqueue('image.resize', options => jsonb_build_object('after', jsonb_build_array(\(job)))) from generate_series(1, 100)
                """)
            let large = try await world.get("/console/jobs/\(job)?flow=yes").body
            #expect(
                large.contains("The flow has too many jobs to draw") && !large.contains("<svg role=\"group\""))
            #expect(large.contains("Below") && large.contains(" not shown"), "its beginning is there")
            let alone = try await world.job("running")
            #expect(try await !world.get("/console/jobs/\(alone)?flow=yes").body.contains("<svg role=\"group\""))
        }
    }
}
