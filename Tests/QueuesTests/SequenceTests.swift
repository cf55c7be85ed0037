import Foundation
import Postgres
import TestSupport
import Testing

/// Random sequences of what callers, operators and workers do, in transactions of several sessions, against rules that must hold after each step.
///
/// `MILLRACE_ROUNDS` and `MILLRACE_SEED` say how many rounds, and from which seed on. A round is the same each time, apart from what the clock and
/// the order of locks decide. `MILLRACE_PLANTED` names a fault of `PlantedFault` that is to be found.
@Suite struct SequenceTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let rounds = environment["MILLRACE_ROUNDS"].flatMap { Int($0) } ?? 100
    private static let first = environment["MILLRACE_SEED"].flatMap { Int($0) } ?? 1
    private static let planted = environment["MILLRACE_PLANTED"].flatMap { PlantedFault(rawValue: $0) }
    private static let steps = environment["MILLRACE_STEPS"].flatMap { Int($0) } ?? 80

    @Test(arguments: first..<(first + rounds))
    func `whatever is done, each job has one place, nothing is kept or given back wrongly, and all come to an end`(
        seed: Int
    ) async throws {
        try await withDatabase(.movableClock) { database in
            var world = try await SequenceWorld(database, random: SeededRandom(seed))
            try await Self.planted?.plant(in: world.worker)
            do {
                for _ in 0..<Self.steps {
                    try await world.step()
                    let faults = try await world.faults()
                    guard faults.isEmpty else { return Self.record(seed, faults, world) }
                }
                let hidden = try await world.hidden()
                let left = try await hidden + world.settle() + world.faults() + world.verdicts()
                if !left.isEmpty { Self.record(seed, left, world) }
            } catch {
                Self.record(seed, ["\(error)"], world)
            }
            for connection in [world.worker] + world.callers.map(\.connection) { await connection.close() }
        }
    }

    private static func record(_ seed: Int, _ faults: [String], _ world: SequenceWorld) {
        Issue.record(
            "seed \(seed): \(faults.joined(separator: "; ")), after:\n\(world.story.joined(separator: "\n"))")
    }

    private static let otherDoors: Set<String> = [
        "session_close",  // what `rescue` does
        "enqueue_as",  // what `enqueue` does
        "approvals_remind",  // people are told, and no job moves
        "mail_erase", "person_erase",  // what ended jobs hold: CompensationTests
    ]

    /// What may be called by somebody else than the owner, and writes to what jobs are made of.
    @Test func `every door that writes jobs is part of the sequences`() async throws {
        let root = #filePath.split(separator: "/").dropLast(1).map { "/\($0)" }.joined()
        let sources = try FileManager.default.contentsOfDirectory(atPath: root).filter {
            $0.hasPrefix("Sequence") || $0 == "Support.swift"
        }
        let text = sources.map {
            String(decoding: FileManager.default.contents(atPath: "\(root)/\($0)") ?? Data(), as: UTF8.self)
        }.joined()
        let called = Set(text.matches(of: /millrace\.([a-z_]+)\(/).map { String($0.output.1) })
        try await RoleTests.withRoles { _, owner, _ in
            let doors = try await owner.column(
                """
                with recursive source as (
                    select p.oid, p.proname, p.prosrc, exists (select from aclexplode(p.proacl) a where a.grantee <> p.proowner) as is_door
                      from pg_proc p where p.pronamespace = 'millrace'::regnamespace
                ), writes(name) as (
                    select s.proname from source s
                     where s.prosrc ~ '(insert into|update|delete from) millrace\\.(ready|timer|parked|blocked|lease|unique_lock|edge|ending|history|wait|undo|step|signal|approval|cancel)\\y'
                ), call as (
                    select s.proname as caller, m[1] as callee from source s cross join lateral regexp_matches(s.prosrc, 'millrace\\.([a-z_]+)\\(', 'g') m
                ), reaches(name) as (
                    select w.name from writes w
                    union
                    -- What enqueues, cancels, retries or deletes by these is covered by their own doors.
                    select c.caller from reaches r join call c on c.callee = r.name
                     where r.name not like 'enqueue%' and r.name not in ('cancel_now', 'retry_now', 'redrive', 'job_delete_now', 'jobs_delete_ended', 'signal', 'unique_end',
                                          'complete', 'reschedule_now', 'approval_answer')
                )
                select distinct r.name from reaches r join source s on s.proname = r.name and s.is_door order by 1
                """)
            #expect(doors.count > 30)
            let missing = doors.filter { !called.contains($0) && !Self.otherDoors.contains($0) }
            #expect(missing.isEmpty, "not part of any sequence: \(missing)")
        }
    }
}
