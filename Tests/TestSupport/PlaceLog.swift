import Foundation
package import Postgres

/// Each move of a job from one place to another, as triggers saw it, against the tables of sql/states.md.
package struct PlaceLog {
    /// A table's rows are places, and so is what makes a job run, follow or have ended. Of a statement only the difference counts.
    package static let triggers = """
        create table public.moved (seq bigint generated always as identity, statement text, job bigint, place text, change int);
        create function public.moves(job bigint, place text, change int) returns void language sql as $$
            insert into public.moved (statement, job, place, change)
            select concat_ws(' ', pg_backend_pid(), extract(epoch from statement_timestamp()), case when current_query() ~ 'operation_step' then 'operation' else 'door' end), $1, $2, $3
        $$;
        create function public.place_moves() returns trigger language plpgsql as $$
        begin
            if tg_op = 'INSERT' then perform public.moves(new.job, tg_table_name, 1);
            else perform public.moves(old.job, tg_table_name, -1); end if;
            return null;
        end $$;
        create function public.lease_moves() returns trigger language plpgsql as $$
        begin
            if tg_op = 'INSERT' then
                perform public.moves(i, 'running', 1) from unnest(new.ids) i;
            else
                perform public.moves(i, 'running', -1) from unnest(old.ids) i
                 where not exists (select from millrace.history h where h.id = i and h.session = old.session and h.number = old.number);
            end if;
            return null;
        end $$;
        create function public.history_moves() returns trigger language plpgsql as $$
        declare
            ends text[] := array['succeeded', 'cancelled', 'dead'];
        begin
            if tg_op <> 'INSERT' and old.outcome <= 3 then perform public.moves(old.id, ends[old.outcome], -1); end if;
            if tg_op <> 'DELETE' and new.outcome <= 3 then perform public.moves(new.id, ends[new.outcome], 1); end if;
            if tg_op = 'INSERT' and new.session <> 0 then perform public.moves(new.id, 'running', -1); end if;
            return null;
        end $$;
        create function public.follower_moves() returns trigger language plpgsql as $$
        begin
            if tg_op <> 'INSERT' and old.next is not null then perform public.moves(old.next, 'follower', -1); end if;
            if tg_op <> 'DELETE' and new.next is not null then perform public.moves(new.next, 'follower', 1); end if;
            return null;
        end $$;
        create trigger moves after insert or delete on millrace.ready for each row execute function public.place_moves();
        create trigger moves after insert or delete on millrace.timer for each row execute function public.place_moves();
        create trigger moves after insert or delete on millrace.parked for each row execute function public.place_moves();
        create trigger moves after insert or delete on millrace.blocked for each row execute function public.place_moves();
        create trigger moves after insert or delete on millrace.lease for each row execute function public.lease_moves();
        create trigger moves after insert or update or delete on millrace.history for each row execute function public.history_moves();
        create trigger moves after insert or update or delete on millrace.unique_lock for each row execute function public.follower_moves();
        """

    package struct Move: Hashable {
        package var from: String
        package var to: String

        package init(from: String, to: String) {
            self.from = from
            self.to = to
        }
    }

    /// How often each move was made.
    package private(set) var moves: [Move: Int] = [:]

    package init() {}

    /// Reads what has been committed since the last look; returns the moves that no table permits.
    package mutating func look(_ connection: Connection) async throws -> [String] {
        let rows = try await connection.query(
            .pasted(
                """
                with gone as (delete from public.moved returning *), sums as (
                    select statement, job, place, sum(change) as n, min(seq) as seq from gone group by statement, job, place having sum(change) <> 0
                )
                select concat_ws('|', job, coalesce(string_agg(place, ' and ' order by place) filter (where n < 0), 'nowhere'),
                                 coalesce(string_agg(place, ' and ' order by place) filter (where n > 0), 'nowhere'), split_part(statement, ' ', 3))
                  from sums group by statement, job order by min(seq)
                """), deadline: .seconds(60)
        ) { row throws(PostgresError) in row.optionalString(0) ?? "" }
        return rows.compactMap { row in
            let fields = row.split(separator: "|").map(String.init)
            guard fields.count == 4 else { return "a move says \(row)" }
            let move = Move(from: fields[1], to: fields[2])
            moves[move, default: 0] += 1
            // An operation that is undone puts back what it has moved.
            let back = fields[3] == "operation" ? Move(from: move.to, to: move.from) : move
            guard !Self.permitted.contains(move), !Self.permitted.contains(back) else { return nil }
            return "job \(fields[0]) moves from \(move.from) to \(move.to), and sql/states.md has no such move"
        }
    }

    /// What the tables permit.
    static let permitted: Set<Move> = {
        var permitted: Set<Move> = []
        for heading in ["What may be done to it", "What happens by itself"] {
            for row in StatesPage.table(heading) {
                for (column, word) in row.cells where column != "state" && column != "begun" {
                    for to in places(of: word) {
                        for from in places(of: row.name) { permitted.insert(Move(from: from, to: to)) }
                    }
                }
            }
        }
        for row in StatesPage.table("What runs, callers and time move besides") {
            for to in (row.cells["to"] ?? "").split(separator: ",") {
                for to in places(of: to.trimmingCharacters(in: .whitespaces)) {
                    for from in places(of: row.name) { permitted.insert(Move(from: from, to: to)) }
                }
            }
        }
        return permitted
    }()

    /// The places of a state, or of a word in a cell. None: the job stays where it is.
    private static func places(of word: String) -> [String] {
        switch word {
        case "nowhere", "gone", "deleted": ["nowhere"]
        case "blocked": ["blocked"]
        default: stands[word] ?? []
        }
    }

    /// The place of each state, from its table: `ready`, or the outcome of `history`.
    private static let stands: [String: [String]] = Dictionary(
        uniqueKeysWithValues: StatesPage.table("Where a job is").map { row in
            let place = row.cells["its place"] ?? ""
            let table = place.split(separator: "`").first.map(String.init) ?? ""
            switch table {
            case "unique_lock.next": return (row.name, ["follower"])
            case "lease.ids": return (row.name, ["running"])
            case "history":
                let ends = ["1": "succeeded", "2": "cancelled", "3": "dead"]
                let outcomes = place.components(separatedBy: "outcome").last ?? ""
                return (row.name, ends.filter { outcomes.contains($0.key) }.map(\.value))
            case "ready", "timer", "parked", "blocked": return (row.name, [table])
            default: return (row.name, [])
            }
        })
}
