import CommandKit
import FoundationEssentials
import LoadKit
import Postgres

/// Goes through every step of an alarm's path with every fault, and judges each wave by what the provider received.
struct StrikeScenario: Sendable {
    let invocation: Invocation

    private struct Cell: Sendable {
        var point: StrikePoint
        var fault: StrikeFault
        /// nil: no worker reached the point.
        var worker: String?
        var verdict = StrikeJudge.Verdict()
    }

    /// Without a safeguard what never comes is waited for, and less will do.
    private var patience: Duration { .seconds(invocation.parsed.string("break") == nil ? 180 : 30) }

    func run() async throws -> ExitCode {
        let parsed = invocation.parsed
        let points = parsed.list("step").compactMap { StrikePoint(rawValue: $0) }
        let faults = parsed.list("fault").compactMap { StrikeFault(rawValue: $0) }
        let broken = parsed.string("break").flatMap { StrikeBreak(rawValue: $0) }
        var plan = StrikeWorld.Plan()
        plan.hasPoints = true
        plan.lease = parsed.duration("lease") ?? plan.lease
        let world = try StrikeWorld(invocation, plan)
        if parsed.isOn("keep") { Scratch.keep(world.directory, invocation) }
        try await world.open()
        if let broken {
            let connection = try await world.connect()
            try await broken.apply(on: connection)
            await connection.close()
        }
        world.startWorkers()
        var cells: [Cell] = []
        let walk = (points.isEmpty ? StrikePoint.allCases : points).flatMap { point in
            (faults.isEmpty ? StrikeFault.allCases : faults).map { (point, $0) }
        }
        let live = invocation.console.live()
        for (number, (point, fault)) in walk.enumerated() {
            live.update(["\(number + 1) of \(walk.count): \(fault.rawValue) at \(point.rawValue)"])
            cells.append(try await play(number + 1, point, fault, in: world))
        }
        live.update([])
        let problems = try await world.stopWorkers()
        return report(cells, problems)
    }

    private func play(
        _ number: Int, _ point: StrikePoint, _ fault: StrikeFault, in world: StrikeWorld
    ) async throws -> Cell {
        var cell = Cell(point: point, fault: fault)
        let wave = StrikeWave(number: number, people: invocation.parsed.integer("people") ?? 3, wait: 2)
        let office = try await world.connect()
        try await world.settle(on: office)
        let gate = StrikeGate(point, in: world)
        try await gate.close()
        var judge = StrikeJudge()
        judge.missed = wave.missed
        judge.due = try await wave.fill(lead: 2, on: office)
        let (due, answering) = (judge.due, try await wave.answering(on: office))
        async let seen = wave.checkIn(due, ahead: 1, in: world)
        let answers = Task { try await wave.answer(answering, in: world) }
        defer { answers.cancel() }
        cell.worker = try await gate.catches(within: patience)
        await office.close()
        if let caught = cell.worker {
            // A check-in that has the row stays there beyond the expiry; whom it is the callers' own connection, a worker is struck.
            let last = due.values.max() ?? 0
            let beyond = point == .checkIn ? max(0, last + 0.5 - MachineClock.now()) : 0
            if beyond > 0 { try await Task.sleep(for: .seconds(beyond)) }
            let worker = world.names.contains(caught) ? caught : world.names[0]
            try await world.strike(fault, worker: worker) { await gate.open() }
        }
        await gate.open()
        judge.seen = try await seen
        let after = try await world.connect()
        _ = try await Patience.waited(patience) { try await wave.isAtRest(on: after) }
        try await judge.read(wave.stem, on: after)
        await after.close()
        judge.entries = world.provider.entries.filter { judge.places[$0.to] != nil }
        cell.verdict = judge.check()
        if cell.worker == nil {
            cell.verdict.findings.append(.init(rule: "the step is reached", detail: point.rawValue))
        }
        return cell
    }

    private func report(_ cells: [Cell], _ problems: [String]) -> ExitCode {
        let findings =
            cells.flatMap { cell in
                cell.verdict.findings.map { ("\(cell.fault.rawValue) at \(cell.point.rawValue)", $0) }
            } + problems.map { ("at the end", StrikeJudge.Finding(rule: "workers end well", detail: $0)) }
        let console = invocation.console
        console.show([
            "scenario": "checkins-strike",
            "cells": .array(
                cells.map { cell in
                    [
                        "step": .string(cell.point.rawValue), "fault": .string(cell.fault.rawValue),
                        "struck": cell.worker.map { .string($0) } ?? .null, "alarms": .int(cell.verdict.alarms),
                        "notices": .int(cell.verdict.notices), "duplicates": .int(cell.verdict.duplicates),
                        "latest_s": .double(cell.verdict.latest), "findings": .int(cell.verdict.findings.count),
                    ]
                }),
            "findings": .array(
                findings.prefix(1000).map {
                    ["cell": .string($0.0), "rule": .string($0.1.rule), "detail": .string($0.1.detail)]
                }),
        ]) {
            var table = Table([
                .init("step"), .init("fault"), .init("struck"), .init("alarms", .trailing), .init("notices", .trailing),
                .init("duplicates", .trailing), .init("latest", .trailing), .init(""),
            ])
            for cell in cells {
                let verdict = cell.verdict
                table.add([
                    .init(cell.point.rawValue), .init(cell.fault.rawValue), .init(cell.worker ?? "nobody"),
                    .init(Humane.count(verdict.alarms)), .init(Humane.count(verdict.notices)),
                    .init(Humane.count(verdict.duplicates)), .init("\(Humane.decimal(verdict.latest, places: 2)) s"),
                    verdict.findings.isEmpty ? .init("kept", .green) : .init("VIOLATED", .red),
                ])
            }
            console.print(table)
            for (cell, finding) in findings.prefix(50) {
                console.print("VIOLATED, \(cell): \(finding.rule): \(finding.detail)")
            }
            console.print(
                findings.isEmpty ? "every promise is kept" : "\(Humane.count(findings.count, "promise")) violated")
        }
        return findings.isEmpty ? .done : .failed
    }
}

/// Stops every transaction that reaches a point, until the gate is opened.
private final class StrikeGate: Sendable {
    private let point: StrikePoint
    private let world: StrikeWorld
    private let holder: GateHolder

    init(_ point: StrikePoint, in world: StrikeWorld) {
        (self.point, self.world) = (point, world)
        holder = GateHolder()
    }

    func close() async throws {
        if point.isAtProvider { return world.provider.hold() }
        let connection = try await world.connect("strike-gate")
        await holder.keep(connection)
        _ = try await connection.query(
            "select pg_advisory_lock($1, $2) is null", [.int4(StrikePoint.lock), .int4(point.number)]
        ) { row throws(PostgresError) in try row.bool(0) }
    }

    /// The stopped worker; nil when none came.
    func catches(within limit: Duration) async throws -> String? {
        let end = ContinuousClock.now + limit
        let connection = try await world.connect()
        while ContinuousClock.now < end {
            if let caught = point.isAtProvider ? world.provider.held : try await point.caught(on: connection) {
                await connection.close()
                return caught
            }
            try await Task.sleep(for: .milliseconds(5))
        }
        await connection.close()
        return nil
    }

    /// The lock goes with its connection, if that is still there.
    func open() async {
        world.provider.release()
        await holder.drop()
    }
}

private actor GateHolder {
    private var connection: Connection?

    func keep(_ connection: Connection) { self.connection = connection }

    func drop() async {
        let kept = connection
        connection = nil
        await kept?.close()
    }
}

/// Ways to break the alarm on purpose, which the harness must notice.
enum StrikeBreak: String, CaseIterable, Sendable {
    /// A sending whose worker did not report back is not sent again.
    case silence
    /// The timer does not look whether the deadline that it woke for has moved.
    case deaf

    func apply(on connection: Connection) async throws {
        switch self {
        case .silence:
            try await FunctionText.replace(
                "n.status in ('pending', 'attempting') and n.address is not null",
                with: "n.status = 'pending' and n.address is not null", in: "notice_take", on: connection)
        case .deaf:
            try await FunctionText.replace(
                "if w.expires_at <= t then", with: "if w.wake_at <= t then", in: "watch_look",
                on: connection)
        }
    }
}
