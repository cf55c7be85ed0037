import CommandKit
import LoadKit
import Postgres

/// Takes a safeguard out of the database's functions, for runs that must be caught. Other safeguards are taken out of the worker.
enum LedgerSabotage {
    static func apply(_ broken: LedgerBreak?, on connection: Connection) async throws {
        switch broken {
        case .noTokenCheck: try await takeAwayTokenCheck(on: connection)
        case .noSweep: try await takeAwaySweep(on: connection)
        case .signalTwice:
            try await FunctionText.replace(
                "update millrace.signal x set state = 2, taken_by = the_job where x.seq = s.seq;", with: "null;",
                in: "signal_take", on: connection)
        case .signalLost:
            // One that nobody waits for yet is not kept.
            try await FunctionText.replace(
                "update millrace.signal x set state = 1 where", with: "update millrace.signal x set state = 2 where",
                in: "signals_tell", on: connection)
        case .finishBeforeEffect, .earlyRescue, nil: break
        }
    }

    /// No look below the floors finds anything, and no worker learns what may have committed late: its floors pass over such jobs for good.
    private static func takeAwaySweep(on connection: Connection) async throws {
        for function in ["lanes", "lanes_above", "lanes_between"] {
            try await FunctionText.replace("\nbegin\n", with: "\nbegin\n    return;\n", in: function, on: connection)
        }
        try await FunctionText.replace(
            "\nbegin\n", with: "\nbegin\n    seq := -1; writers := '{}'; return;\n", in: "horizon", on: connection)
    }

    private static func takeAwayTokenCheck(on connection: Connection) async throws {
        // An end is taken down whether or not its lease still stands, and nothing refuses a second one.
        try await FunctionText.replace(
            "select * from held union all select * from ended",
            with: """
                select * from held union all select * from ended union all
                select x.number, t from unnest(partial || complete) x(number)
                 where not exists (select from held h where h.number = x.number) and not exists (select from ended e where e.number = x.number)
                """, in: "finish", on: connection)
        try await connection.execute(
            """
            do $$ declare leaf record; begin
                for leaf in select i.indexrelid::regclass as name from pg_index i
                             join pg_inherits h on h.inhrelid = i.indrelid
                             join pg_inherits g on g.inhrelid = h.inhparent
                            where g.inhparent = 'millrace.history'::regclass and i.indisunique
                loop execute format('drop index %s', leaf.name); end loop;
            end $$
            """)
    }
}
