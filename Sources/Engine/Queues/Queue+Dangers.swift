package import Postgres

/// What may slow the queue down or stop it from outside: other sessions, and the server itself. Read from the catalogs, as the role may.
package struct DangerRow: Sendable, Equatable {
    package enum Sort: String, Sendable, CaseIterable {
        // What keeps old row versions: the oldest of each sort.
        case transaction, prepared, slot, standby
        /// A transaction with more of them than Postgres keeps in its fast list.
        case subtransactions
        /// The table of locks is more than half full; who has the most.
        case locks
        /// Commits that wait for each other because they notify; whose most are.
        case notify
        /// Who holds up our sessions, and is held up by nobody.
        case blocker
        /// Who has locked rows of hot tables for some time: claims pass them over.
        case rows
        /// A table of the catalogue with mostly dead rows.
        case catalogue
        /// A vacuum against wraparound that runs.
        case freeze
        case transactionIDs = "transaction ids"
        case multixacts
        /// The client with the most connections.
        case connections
    }

    package var sort: Sort
    package var pid: Int?
    /// The application and the user; of a catalogue, a vacuum or numbers: the table or the database.
    package var owner: String
    /// The session's state, and what else names it, such as a slot.
    package var detail: String
    /// How many transactions, locks, sessions or rows.
    package var amount: Int
    /// In seconds; of a catalogue, how many rows live.
    package var age: Double?

    package init(
        _ sort: Sort, pid: Int? = nil, owner: String = "", detail: String = "", amount: Int, age: Double? = nil
    ) {
        (self.sort, self.pid, self.owner, self.detail, self.amount, self.age) = (sort, pid, owner, detail, amount, age)
    }
}

extension Queue {
    /// One row of each sort at most.
    private static let dangerRows: SQL = """
        with stats as materialized (
            select a.pid, a.datname, a.usename::text as login, a.application_name as app, a.state, a.backend_type, a.wait_event_type,
                   extract(epoch from clock_timestamp() - a.xact_start)::float8 as age, a.backend_xmin, a.backend_xid, a.datname = current_database() as here,
                   concat_ws(', ', nullif(a.application_name, ''), a.usename) as owner
              from pg_stat_activity a where a.pid <> pg_backend_pid()
        ), held as materialized (
            -- A table of ours by its name, a partition by that of its table.
            select l.pid, l.locktype, l.mode, l.granted, l.classid, l.objid, l.database, coalesce(p.relname, c.relname)::text as ours
              from pg_locks l
              left join pg_class c on c.oid = l.relation and c.relkind in ('r', 'p') and c.relnamespace = to_regnamespace('millrace')
              left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
        ), capacity as (
            select current_setting('max_locks_per_transaction')::bigint
                   * (current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint) as n
        ), found as (
            -- What keeps old row versions, of four sorts.
            (select 'transaction' as sort, s.pid, s.owner, coalesce(s.state, '') as detail, greatest(age(s.backend_xmin), age(s.backend_xid))::bigint as amount, s.age
               from stats s where s.here and coalesce(s.backend_xmin, s.backend_xid) is not null and s.backend_type = 'client backend'
              order by amount desc limit 1)
            union all
            (select 'prepared', null, p.owner::text, p.gid, age(p.transaction)::bigint, extract(epoch from clock_timestamp() - p.prepared)::float8
               from pg_prepared_xacts p where p.database = current_database() order by 5 desc limit 1)
            union all
            (select 'slot', s.active_pid, '', s.slot_name::text, greatest(age(s.xmin), age(s.catalog_xmin))::bigint, null
               from pg_replication_slots s where s.xmin is not null or s.catalog_xmin is not null order by 5 desc limit 1)
            union all
            (select 'standby', r.pid, coalesce(nullif(r.application_name, ''), r.usename::text), coalesce(r.client_addr::text, 'a local socket'), age(r.backend_xmin)::bigint, null
               from pg_stat_replication r where r.backend_xmin is not null order by 5 desc limit 1)
            union all
            -- No view before Postgres 16 says it: numbers that are in progress and are no session's own are subtransactions. They follow their
            -- transaction's, and are counted for the last one before them.
            (select 'subtransactions', x.pid, x.owner, x.state, count(*), x.age
               from (select y.*, coalesce(lead(y.own) over (order by y.own), y.own + y.since) as next
                       from (select s.pid, s.owner, s.here, coalesce(s.state, '') as state, s.age, age(s.backend_xid) as since,
                                    -- With the epoch of now, or the one beside it.
                                    edge.n - (edge.n & 4294967295) + low.n + case when low.n - (edge.n & 4294967295) > 2147483647 then -4294967296
                                        when (edge.n & 4294967295) - low.n > 2147483647 then 4294967296 else 0 end as own
                               from stats s, lateral (select s.backend_xid::text::bigint as n) low, (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as n) edge
                              where s.backend_xid is not null) y) x,
                    lateral generate_series(x.own + 1, least(x.own + 1000, x.next - 1)) n
              where x.here and x.age > 1 and pg_xact_status(n::text::xid8) = 'in progress'
              group by 2, 3, 4, 6 having count(*) > 64 order by 5 desc limit 1)
            union all
            (select 'locks', t.pid, coalesce(s.owner, 'a prepared transaction'), t.everything::text || ' of ' || c.n, t.n, s.age
               from capacity c, (select h.pid, count(*) as n, sum(count(*)) over () as everything from held h where h.locktype not in ('virtualxid', 'transactionid') group by 1) t left join stats s using (pid)
              where t.everything > c.n / 2 order by t.n desc limit 1)
            union all
            -- One lock for all databases, from the end of a transaction that notifies until its commit is on disk.
            (select 'notify', null, w.owner, '', w.n, null
               from (select s.owner, count(*) as n, sum(count(*)) over () as everything from held h join stats s using (pid)
                      where h.locktype = 'object' and h.database = 0 and h.classid = 'pg_database'::regclass and h.objid = 0 and not h.granted group by 1) w
              where w.everything >= 20 order by w.n desc limit 1)
            union all
            -- Who holds up others, and is held up by nobody.
            (select 'blocker', b.pid, s.owner, coalesce(s.state, '') || coalesce('|' || (
                        select string_agg(distinct h.ours, ',') from held h
                         where h.pid = b.pid and h.granted and h.mode <> 'AccessShareLock'), ''), count(*), s.age
               from (select s.pid as waits, unnest(pg_blocking_pids(s.pid)) as pid from stats s where s.here and s.wait_event_type = 'Lock' limit 20) b
               join stats s using (pid)
              where coalesce(s.wait_event_type, '') <> 'Lock' and s.age > 2
                and exists (select from held h where h.pid = b.waits and h.ours is not null)
              group by 2, 3, s.state, s.age order by 5 desc limit 1)
            union all
            -- Rows that are locked are passed over by claims, and a locked table stops them; inserts of callers hold another mode.
            (select 'rows', h.pid, s.owner, coalesce(s.state, '') || '|' || string_agg(distinct h.ours, ','), count(*), s.age
               from held h join stats s using (pid)
              where h.granted and s.here and s.backend_type = 'client backend' and h.ours is not null
                and (s.age > 5 and h.ours in ('ready', 'lease', 'timer', 'beat', 'session') and h.mode in ('RowShareLock', 'ShareLock', 'ShareRowExclusiveLock')
                     or s.age > 2 and h.mode in ('ExclusiveLock', 'AccessExclusiveLock'))
              group by 2, 3, s.state, s.age order by s.age desc limit 1)
            union all
            (select 'catalogue', null, t.relname::text, pg_size_pretty(pg_table_size(t.relid)), t.n_dead_tup, t.n_live_tup::float8
               from pg_stat_sys_tables t join pg_class c on c.oid = t.relid
              -- Of what all databases share, plans read little.
              where t.schemaname = 'pg_catalog' and not c.relisshared and t.n_dead_tup > 100000 and t.n_dead_tup > 5 * t.n_live_tup
              order by t.n_dead_tup desc limit 1)
            union all
            (select 'freeze', v.pid, coalesce(v.relid::regclass::text, ''), v.phase, coalesce(v.heap_blks_total - v.heap_blks_scanned, 0), s.age
               from pg_stat_progress_vacuum v join pg_stat_activity a using (pid) join stats s using (pid)
              where v.datname = current_database() and a.query like '%(to prevent wraparound)%' order by s.age desc limit 1)
            union all
            select 'transaction ids', null, d.datname::text, current_setting('autovacuum_freeze_max_age'), age(d.datfrozenxid)::bigint, null
              from pg_database d where d.datname = current_database()
            union all
            select 'multixacts', null, d.datname::text, current_setting('autovacuum_multixact_freeze_max_age'), mxid_age(d.datminmxid)::bigint, null
              from pg_database d where d.datname = current_database()
            union all
            (select 'connections', null, s.owner, '', count(*), null
               from stats s where s.backend_type = 'client backend' group by 3 order by 5 desc limit 1)
        )
        select * from found
        """

    package static func dangers(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [DangerRow] {
        try await connection.query(dangerRows, deadline: deadline) { row throws(PostgresError) in
            guard let sort = DangerRow.Sort(rawValue: try row.string(0)) else {
                throw .undecodable(column: 0, expected: "a danger")
            }
            return DangerRow(
                sort, pid: row.isNull(1) ? nil : Int(try row.int(1)), owner: row.optionalString(2) ?? "",
                detail: row.optionalString(3) ?? "", amount: row.isNull(4) ? 0 : Int(try row.int(4)),
                age: row.optionalDouble(5))
        }
    }
}
