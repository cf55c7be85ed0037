import CommandKit
import Postgres

/// Families, contacts and watches in a real database, called as a gateway calls them, and compared with the model.
struct PeopleWorld {
    struct Tally: Sendable {
        var sequences = 0
        var steps = 0
        var refused = 0
        var asks = 0
        var alarms = 0
        var endings = 0
        var byWhat: [String: Int] = [:]
        /// Violations of the rules, with the steps that led there.
        var faults: [String] = []

        mutating func add(_ fault: String, _ kind: String) {
            byWhat[kind, default: 0] += 1
            if faults.count < 20 { faults.append(fault) }
        }
    }

    private let connection: Connection
    /// The common beginning of its roles' names.
    private let name: String

    /// - Parameter connection: a superuser's, because it takes on the gateway's roles.
    init(_ connection: Connection, name: String) {
        self.connection = connection
        self.name = name
    }

    // MARK: roles

    /// A gateway's login takes on a role that cannot log in; an app's server has its own role.
    func open() async throws {
        try await connection.run(script: Self.roles)
        _ = try await value("select pg_temp.people_open($1)::text", [name])
    }

    func close() async throws {
        _ = try await value("select pg_temp.people_close($1)::text", [name])
    }

    private static let roles: SQL = """
        create function pg_temp.people_open(name text) returns void language plpgsql as $f$
        declare
            one record;
            role text;
        begin
            execute format('create role %I nologin', name || '_gateway');
            execute format('create role %I nologin', name || '_server');
            execute format('create role %I login noinherit', name || '_login');
            execute format('grant %I, %I to %I', name || '_gateway', name || '_server', name || '_login');
            perform millrace.grant_backend(name || '_server');
            perform millrace.trust_claims(name || '_login');
            foreach role in array array[name || '_gateway', name || '_server'] loop
                execute format('grant usage on schema millrace to %I', role);
                for one in
                    select p.oid::regprocedure as door from pg_proc p
                     where p.pronamespace = 'millrace'::regnamespace and p.proname in ('family_create', 'family_join', 'family_invite', 'family_uninvite',
                        'family_leave', 'person_erase', 'points', 'weekly_stats', 'quest_history', 'moods', 'check_in_show', 'check_in_contact',
                        'check_in_contact_remove', 'check_in_consent_ask', 'check_in_accept', 'check_in_arm', 'check_in', 'check_in_disarm',
                        'check_in_alarm', 'check_in_respond')
                loop
                    execute format('grant execute on function %s to %I', one.door, role);
                end loop;
            end loop;
        end $f$;
        create function pg_temp.people_close(name text) returns void language plpgsql as $f$
        declare
            role text;
        begin
            foreach role in array array[name || '_login', name || '_gateway', name || '_server'] loop
                execute format('drop owned by %I', role);
                execute format('drop role %I', role);
            end loop;
        end $f$;
        create function pg_temp.call_as(login text, the_role text, claims text, statement text) returns text language plpgsql as $f$
        declare
            answer text;
        begin
            perform set_config('session_authorization', login, true);
            perform set_config('role', the_role, true);
            perform set_config('request.jwt.claims', claims, true);
            execute 'select ' || statement into answer;
            perform set_config('role', 'none', true);
            set local session authorization default;
            return 'ok ' || coalesce(answer, '');
        exception when others then
            return 'no ' || sqlstate || ' ' || sqlerrm;
        end $f$;
        """

    // MARK: sequences

    /// One sequence of calls; nothing of it is kept.
    func play(seed: UInt64, steps: Int, into tally: inout Tally) async throws {
        try await run("begin")
        try await run(
            "update millrace.test_clock set shift = timestamptz '2027-05-10 00:10Z' - clock_timestamp()")
        var choices = PeopleChoices(seed: seed)
        var model = PeopleModel()
        var judge = PeopleJudge()
        var taken: [PeopleStep] = []
        var before = Sight()
        do {
            for _ in 0..<steps {
                let step = choices.next(model)
                taken.append(step)
                let allowed = model.apply(step)
                let told = try await toldOf(step, allowed)
                let answer = try await call(step)
                let after = try await look()
                var faults = judge.faults(
                    step, allowed: allowed, answer: answer, model: model, before: before, after: after)
                if let told, case .erase(let person) = step.act, allowed {
                    let ended = try await endings(of: told.alarms) - told.before
                    tally.endings += ended
                    if ended != told.addresses {
                        faults.append(
                            ("ending", "\(told.addresses) were told of \(person)'s alarm, \(ended) of its end"))
                    }
                }
                tally.steps += 1
                tally.refused += allowed ? 0 : 1
                before = after
                for fault in faults {
                    tally.add("seed \(seed), step \(taken.count): \(fault.what)\n  \(step): \(answer)", fault.kind)
                }
                if !faults.isEmpty { break }  // the model and the database have parted
            }
        } catch {
            try await run("rollback")
            throw error
        }
        tally.asks += judge.asks
        tally.alarms += model.alarms.count
        tally.sequences += 1
        try await run("rollback")
    }

    /// The database's contents in the model's terms; and the requests that were sent.
    struct Sight {
        var state: [String] = []
        var questions: [PeopleJudge.Question] = []

        /// The watches, with their persons.
        var watches: [String] { state.filter { $0.hasPrefix("watch ") } }
    }

    private func look() async throws -> Sight {
        let rows = try await column(
            """
            select 'member ' || person || ' ' || family || ' ' || role from millrace.family_member where family is not null
            union all select 'invitation ' || family || ' ' || person || ' ' || role || case when declined_at is null then '' else ' declined' end
              from millrace.family_invitation where expires_at > millrace.now()
            union all select 'watch ' || person || ' ' || case when state in ('armed', 'warned') then 'running' else state end from millrace.watch
            union all select 'alarm ' || person || ' ' || cause from millrace.alarm where state <> 'resolved'
            union all select 'contact ' || person || ' ' || contact || ' ' || channel || ' '
                    || case when declined_at is not null then 'declined' when verified_at is not null then 'given' else 'open' end
              from millrace.watch_address
            union all select 'never ' || count(*) from millrace.consent_never
            union all select 'asks ' || coalesce(sum(asks), 0) from millrace.consent_ask
            union all select 'question ' || id || ' ' || (data ->> 'person') || ' ' || channel || ' ' || coalesce(address, person)
              from millrace.notice where kind = 'alarm.consent'
            """)
        var sight = Sight()
        for row in rows {
            let parts = row.split(separator: " ").map(String.init)
            if parts[0] == "question" {
                sight.questions.append(
                    .init(id: parts[1], asker: parts[2], address: PeopleModel.key(parts[3], parts[4])))
            } else {
                sight.state.append(row)
            }
        }
        sight.state.sort()
        return sight
    }

    private func call(_ step: PeopleStep) async throws -> String {
        if let sql = step.sql { return try await call(sql, by: step.actor) }
        switch step.act {
        case .link(let person, let contact, let channel, let answer):
            let ref = try await value(
                "select ref::text from millrace.watch_address where person = $1 and contact = $2 and channel = $3",
                [person, contact, channel])
            // A worker handles the link's page, so the caller's role is the worker's.
            return try await value(
                "select pg_temp.call_as(session_user, session_user, '', $1)",
                [
                    answer == "never"
                        ? "millrace.check_in_never('\(ref ?? "")')"
                        : "millrace.check_in_consent('\(ref ?? "")', \(answer == "yes"))"
                ]) ?? ""
        case .respond(let person, let contact, let answer):
            let alarm = try await value(
                "select coalesce((select id from millrace.alarm where person = $1 order by raised_at desc limit 1), gen_random_uuid())::text",
                [person])
            return try await call(
                "millrace.check_in_respond('\(alarm ?? "")', '\(contact)', '\(answer)')", by: step.actor)
        case .wait(let hours):
            _ = try await value(
                "select millrace.test_clock_advance(make_interval(hours => $1::int))::text", ["\(hours)"])
            while try await value("select taken::text from millrace.watch_step('people')", []) != "0" {}
            return "ok"
        default:
            return "no"
        }
    }

    private func call(_ sql: String, by actor: String?) async throws -> String {
        let claims = actor.map { "{\"sub\": \"\($0)\"}" } ?? ""
        return try await value(
            "select pg_temp.call_as($1 || '_login', $1 || case when $2 = '' then '_server' else '_gateway' end, $2, $3)",
            [name, claims, sql]) ?? ""
    }

    // MARK: endings

    /// About the alarms of the person that is erased.
    private struct Told {
        var alarms: String
        /// Addresses that were told of an alarm, and still belong to a contact.
        var addresses: Int
        /// Ends that contacts were told who had been removed meanwhile.
        var before: Int
    }

    private func toldOf(_ step: PeopleStep, _ allowed: Bool) async throws -> Told? {
        guard case .erase(let person) = step.act, allowed else { return nil }
        let alarms = try await value(
            "select coalesce(string_agg(id::text, ','), '') from millrace.alarm where person = $1 and state <> 'resolved'",
            [person])
        let addresses = try await value(
            """
            select count(*)::text from millrace.alarm a join millrace.watch_address d on d.person = a.person
             where a.person = $1 and a.state <> 'resolved' and d.verified_at is not null and d.declined_at is null
               and exists (select from millrace.alarm_event e where e.alarm = a.id and e.what = 'told' and e.contact = d.contact)
            """, [person])
        return Told(
            alarms: alarms ?? "", addresses: Int(addresses ?? "") ?? 0, before: try await endings(of: alarms ?? ""))
    }

    private func endings(of alarms: String) async throws -> Int {
        guard !alarms.isEmpty else { return 0 }
        let count = try await value(
            "select count(*)::text from millrace.notice where kind = 'alarm.resolved' and split_part(key, ':', 2) = any (string_to_array($1, ',')) and split_part(key, ':', 3) = 'left'",
            [alarms])
        return Int(count ?? "") ?? 0
    }

    // MARK: asking

    private func run(_ statement: SQL) async throws {
        try await connection.execute(statement)
    }

    private func value(_ sql: SQL, _ parameters: [String]) async throws -> String? {
        try await connection.query(sql, parameters.map { .text($0) }) { row throws(PostgresError) in
            row.optionalString(0)
        }.first ?? nil
    }

    private func column(_ sql: SQL) async throws -> [String] {
        try await connection.query(sql) { row throws(PostgresError) in try row.string(0) }
    }
}
