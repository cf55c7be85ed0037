import Foundation
import Postgres
import TestSupport
import Testing

/// Random interleavings of callers, workers and housekeeping: a scheduler says which session makes its next statement, and a session that waits for a lock
/// waits until another one lets it go.
///
/// `MILLRACE_ROUNDS` and `MILLRACE_SEED` say how many rounds, and from which seed on; `MILLRACE_STEPS` how long they are. `MILLRACE_PLANTED` names a fault of
/// `PlantedRace` that is to be found. A failure prints its seed and all that was said.
@Suite struct InterleavingTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let rounds = environment["MILLRACE_ROUNDS"].flatMap { Int($0) } ?? 3
    private static let first = environment["MILLRACE_SEED"].flatMap { Int($0) } ?? 1
    private static let planted = environment["MILLRACE_PLANTED"].flatMap { PlantedRace(rawValue: $0) }
    private static let steps = environment["MILLRACE_STEPS"].flatMap { Int($0) } ?? 240

    /// Its time is a sequence, which a rollback does not turn back and every snapshot reads. A wait for a lock that has a limit takes 60 ms.
    private static let template = Template.movableClock.adding("interleaving") { database in
        let connection = try await database.connect()
        try await connection.run(
            """
            create sequence public.sim_time minvalue 0;
            select setval('public.sim_time', (extract(epoch from millrace.now()) * 1000)::bigint);
            create or replace function millrace.now() returns timestamptz
            language sql volatile security definer set search_path = pg_catalog, pg_temp as 'select to_timestamp(last_value / 1000.0) from public.sim_time';
            do $$
            declare
                limited regprocedure;
            begin
                for limited in
                    select p.oid from pg_proc p
                     where p.pronamespace = 'millrace'::regnamespace and exists (select from unnest(p.proconfig) c where c like 'lock_timeout=%')
                loop
                    execute format('alter function %s set lock_timeout = ''60ms''', limited);
                end loop;
            end $$;
            create table public.succeeded (job bigint);
            create function public.succeeds() returns trigger language plpgsql as $$
            begin insert into public.succeeded values (new.id); return null; end $$;
            create trigger succeeds after insert on millrace.history for each row when (new.outcome = 1) execute function public.succeeds();
            \(PlaceLog.triggers)
            select millrace.register_kinds(array['test'], array[null]::text[]);
            """)
        // It has 20 ms of real time, after which it leaves the rest for another call.
        try await connection.replace(in: "slots_sweep", "clock_timestamp()", with: "millrace.now()")
        try await connection.limit("tenant", "a", #"{"concurrency": 1}"#)
        try await connection.limit("tenant", "b", #"{"concurrency": 2}"#)
        try await connection.limit("key", "l", #"{"concurrency": 1}"#)
        await connection.close()
    }

    @Test(arguments: first..<(first + rounds))
    func `whatever comes between two statements, what callers and workers were told is true`(seed: Int) async throws {
        let round = try await Self.play(seed, planting: Self.planted)
        guard !round.faults.isEmpty else { return }
        Issue.record(
            "seed \(seed): \(round.faults.joined(separator: "; ")), after:\n\(round.trace.joined(separator: "\n"))")
    }

    @Test func `the same seed plays the same round`() async throws {
        let one = try await Self.play(Self.first, steps: 80)
        let other = try await Self.play(Self.first, steps: 80)
        #expect(one.trace.count > 80)
        #expect(one.trace == other.trace)
        #expect(one.moves > 20)
    }

    /// By one of its seeds. Without the fault these rounds find nothing: they are of the kind that is played above.
    @Test(arguments: PlantedRace.allCases)
    func `a planted fault is found`(fault: PlantedRace) async throws {
        for seed in fault.seeds {
            if try await !Self.play(seed, planting: fault, steps: 240).faults.isEmpty { return }
        }
        Issue.record("none of the seeds \(fault.seeds) finds \(fault)")
    }

    private struct Round {
        var trace: [String]
        var faults: [String]
        var moves: Int
    }

    private static func play(
        _ seed: Int, planting fault: PlantedRace? = nil, steps: Int = steps
    ) async throws -> Round {
        try await withDatabase(template) { database in
            var round = try await Interleaving(database, random: SeededRandom(seed))
            try await fault?.plant(in: round.watcher)
            var faults: [String] = []
            do {
                for _ in 0..<steps { try await round.step() }
                try await round.drain()
            } catch let fault as Interleaving.Fault {
                faults = fault.sentences
            }
            await round.close()
            return Round(trace: round.trace, faults: faults, moves: round.places.moves.values.reduce(0, +))
        }
    }
}
