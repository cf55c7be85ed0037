import Postgres
import TestSupport

/// Events of stores as SQL makes them: times are seconds and days after midnight. REF and PERSON stand for the subscription and its person.
extension Connection {
    func makePlans() async throws(PostgresError) {
        try await run(
            """
            select millrace.subscription_plan_set('free', '{"pages": 10}', is_default => true),
                   millrace.subscription_plan_set('pro', '{"pages": 1000, "documents": 50}', 10, '{stripe:price_pro,apple:com.example.pro}'),
                   millrace.subscription_plan_set('team', '{"pages": 5000}', 20, '{stripe:price_team}')
            """)
    }

    func makeEvents() async throws(PostgresError) {
        try await run(
            """
            create schema test;
            create function test.s(days numeric) returns bigint language sql as
                $$ select floor(extract(epoch from date_trunc('day', millrace.now() at time zone 'UTC')))::bigint + (days * 86400)::bigint $$;
            create function test.stripe(n int, type text, status text, at int, ends int, extra jsonb default '{}', price text default 'price_pro')
            returns jsonb language sql as $$
                select jsonb_build_object('id', 'evt-REF-' || n, 'type', 'customer.subscription.' || type, 'created', test.s(0) + at,
                    'data', jsonb_build_object('object', jsonb_build_object('id', 'REF', 'object', 'subscription', 'status', status,
                        'metadata', '{"millrace_person": "PERSON"}'::jsonb,
                        'items', jsonb_build_object('data', jsonb_build_array(jsonb_build_object(
                            'price', jsonb_build_object('id', price), 'current_period_end', test.s(ends))))) || extra)) $$;
            create function test.apple(n int, type text, subtype text, status int, at int, tx text, ends int, renews int,
                extra jsonb default '{}', more jsonb default '{}') returns jsonb language sql as $$
                select jsonb_build_object('notificationUUID', 'REF-' || n, 'notificationType', type, 'subtype', subtype,
                    'signedDate', (test.s(0) + at) * 1000, 'data', jsonb_build_object('status', status,
                        'transaction', jsonb_build_object('transactionId', tx, 'originalTransactionId', 'REF', 'productId', 'com.example.pro',
                            'appAccountToken', 'PERSON', 'expiresDate', test.s(ends) * 1000) || extra,
                        'renewal', jsonb_build_object('autoRenewStatus', renews) || more)) $$;
            create function test.tell(door text, events jsonb[], ref text, person text) returns text language plpgsql as $$
            declare e jsonb; said text; all_said text[] := '{}';
            begin
                foreach e in array events loop
                    execute format('select millrace.%I($1)', door) into said using replace(replace(e::text, 'REF', ref), 'PERSON', person)::jsonb;
                    all_said := all_said || said;
                end loop;
                return array_to_string(all_said, ' ');
            end $$;
            create function test.permutations(items jsonb[]) returns table (n bigint, list jsonb[]) language sql as $$
                with recursive p(taken, used) as (
                    select array[]::jsonb[], array[]::int[]
                    union all
                    select p.taken || items[i], p.used || i from p cross join generate_series(1, cardinality(items)) i where i <> all (p.used))
                select row_number() over (), taken from p where cardinality(used) = cardinality(items) $$;
            """)
    }

    /// What must not depend on the order of events, of each subscription, and how many have it.
    func outcomes() async throws(PostgresError) -> [String] {
        try await column(
            """
            select count(*) || ' ' || x.o from (
                select concat_ws(' / ', (to_jsonb(s) - array['id', 'ref', 'person', 'account', 'notice_key', 'created_at', 'changed_at'])::text, a.plan, n.kind, n.due_at,
                    (select string_agg(q.name || q.allowed, ',' order by q.name) from millrace.quota q where q.tenant = s.account)) as o
                  from millrace.subscription s left join millrace.subscription_account a using (account)
                  left join millrace.notice n on n.person = s.person and n.status = 'pending' and n.key = s.notice_key) x
             group by x.o
            """)
    }

    func state(_ ref: String = "s") async throws(PostgresError) -> String? {
        try await value("select concat_ws(' ', state, plan, person) from millrace.subscription where ref = '\(ref)'")
    }

    func pages(_ account: String) async throws(PostgresError) -> String? {
        try await value("select allowed from millrace.quota where tenant = '\(account)' and name = 'pages'")
    }

    /// Runs what is due, as a worker would.
    func runDue() async throws(PostgresError) {
        try await run(
            "select millrace.subscriptions_run(j.args) from millrace.jobs j where j.kind = 'subscriptions.due' and j.args ? 'subscription'"
        )
    }
}
