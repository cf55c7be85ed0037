import CommandKit
import Postgres

/// Where on an alarm's path a fault strikes: from the expiry to the contact's answer, each step before it is written and at its commit.
///
/// The harness's own Postgres has a trigger at each point, which shares an advisory lock. While the harness holds that lock alone, every
/// transaction that reaches the point stops there, and the harness strikes.
enum StrikePoint: String, CaseIterable, Sendable {
    /// The caller has the watch, and its check-in counts; it is not written yet.
    case checkIn = "check-in"
    /// The timer has the watch, and is about to raise the alarm.
    case expiring
    /// Alarm, history and notices are written, and not committed.
    case raised
    /// A lane is about to take the notice.
    case taking
    /// It has, and has not committed it.
    case taken
    /// The provider has taken it over, and its answer is still on the way.
    case handed
    /// The answer is about to be written down.
    case recording
    /// It is written, and not committed.
    case recorded
    /// Nobody has answered, and the timer is about to take the next step.
    case escalating
    /// That step's notices are written, and not committed.
    case escalated
    /// A contact has answered by the link, and its answer is about to be written.
    case answering
    /// It is written, and not committed.
    case answered

    static let lock = Int32(1_297_239_700)

    /// The number of its lock.
    var number: Int32 { Int32(Self.allCases.firstIndex(of: self) ?? 0) + 1 }

    /// The provider, not the database, stands still there.
    var isAtProvider: Bool { self == .handed }

    /// The additions to the schema in the harness's own database.
    static func install(on connection: Connection) async throws(PostgresError) {
        try await connection.run(
            script: """
                create schema strike;
                create function strike.pause() returns trigger language plpgsql as $$
                begin
                    perform pg_advisory_xact_lock_shared(1297239700, tg_argv[0]::int);
                    return new;
                end $$;
                create trigger strike_01 before update on millrace.watch for each row
                    when (new.last_checked_in is distinct from old.last_checked_in) execute function strike.pause(1);
                create trigger strike_02 before insert on millrace.alarm for each row execute function strike.pause(2);
                create constraint trigger strike_03 after insert on millrace.alarm deferrable initially deferred
                    for each row execute function strike.pause(3);
                create trigger strike_04 before update on millrace.notice for each row
                    when (new.status = 'attempting' and old.status = 'pending') execute function strike.pause(4);
                create constraint trigger strike_05 after update on millrace.notice deferrable initially deferred
                    for each row when (new.status = 'attempting' and old.status = 'pending') execute function strike.pause(5);
                create trigger strike_07 before insert on millrace.notice_attempt for each row
                    when (new.outcome = 'accepted') execute function strike.pause(7);
                create constraint trigger strike_08 after insert on millrace.notice_attempt deferrable initially deferred
                    for each row when (new.outcome = 'accepted') execute function strike.pause(8);
                create trigger strike_09 before update on millrace.alarm for each row
                    when (new.step > old.step and old.step > 0) execute function strike.pause(9);
                create constraint trigger strike_10 after update on millrace.alarm deferrable initially deferred
                    for each row when (new.step > old.step and old.step > 0) execute function strike.pause(10);
                create trigger strike_11 before update on millrace.alarm for each row
                    when (new.state = 'acknowledged' and old.state <> 'acknowledged') execute function strike.pause(11);
                create constraint trigger strike_12 after update on millrace.alarm deferrable initially deferred
                    for each row when (new.state = 'acknowledged' and old.state <> 'acknowledged') execute function strike.pause(12);
                """)
    }

    /// The worker that is stopped there, by the name of its connections; nil while there is none.
    func caught(on connection: Connection) async throws(PostgresError) -> String? {
        try await connection.query(
            """
            select a.application_name from pg_locks l join pg_stat_activity a on a.pid = l.pid
             where l.locktype = 'advisory' and l.classid::bigint = $1 and l.objid::bigint = $2 and not l.granted limit 1
            """, [.int8(Int64(Self.lock)), .int8(Int64(number))]
        ) { row throws(PostgresError) in try row.string(0) }.first
    }
}

/// The fault that happens there.
enum StrikeFault: String, CaseIterable, Sendable {
    /// kill -9: statements that the worker has sent are still executed.
    case kill
    /// Its machine is gone, and its connections with it: everything uncommitted is rolled back.
    case vanish
    /// SIGSTOP for a second.
    case pause
    /// SIGSTOP for longer than a lease: another has taken its place when it comes back.
    case freeze
    /// Postgres is stopped, and started again.
    case stop
    /// Postgres crashes.
    case crash
}
