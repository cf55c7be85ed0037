import Postgres
import TestSupport

/// Something in every room, as the doors put it there; what only a worker could bring about is written into the tables.
enum Seed {
    /// Closes an attribute, opens a script, and has a picture that cannot be loaded. Each would set `hacked`.
    static let script = #"" onfocus=hacked=1 '><script>hacked=1</script><img src=x onerror=hacked=1>"#

    /// - Parameter addition: stands at the end of every text that a user or an outside service can fill.
    static func fill(_ connection: Connection, adding addition: String = "") async throws {
        let inSQL = addition.replacing("'", with: "''")
        let inJSON = inSQL.replacing("\"", with: "\\\"")
        for sql in [runs, jobs, rooms] {
            try await connection.run(sql.replacing("{evil}", with: inSQL).replacing("{jevil}", with: inJSON))
        }
    }

    static let mail = "0198c1f2-7a3e-7000-8000-000000000001"
    static let queuedMail = "0198c1f2-7a3e-7000-8000-000000000003"
    static let document = "0198c1f2-7a3e-7000-8000-00000000000d"
    static let webhook = "0198c1f2-7a3e-7000-8000-00000000000f"
    static let subscription = "0198c1f2-7a3e-7000-8000-0000000000b1"
    static let approval = "0198c1f2-7a3e-7000-8000-0000000000a1"

    /// Functions of the session: how a worker takes jobs, and how it ends them.
    static let runs = #"""
        create function pg_temp.claimed(the_session bigint, number bigint, wanted int, kind text) returns bigint[] language sql as $$
            select array_agg(c.id order by c.id) from millrace.claim(the_session, number, array(select k.id from millrace.kind k where k.name = claimed.kind),
                (select array_agg(q.id order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(l order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(0::bigint) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(9223372036854775807) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(wanted) from millrace.queue q, generate_series(0, 39) l), wanted, '{}', '{}') c where c.number is not null
        $$;
        create function pg_temp.ended(the_session bigint, number bigint, ids bigint[], outcome int, error text, wait float8) returns void language sql as $$
            select millrace.finish(the_session, ids, array_agg(number + 1), array_agg(outcome::smallint), array_agg(j.kind order by j.id), array_agg(j.queue order by j.id),
                array_agg(1::smallint), array_agg(0::smallint), array_agg(1500), '{}', array[number + 1], array[cardinality(ids)],
                array_agg(error), array_agg(wait), null) from millrace.job j where j.id = any (ids)
        $$;
        """#

    private static let jobs = #"""
        select millrace.register_kinds(array['mail.deliver', 'report.build', 'image.resize'], array[null, null, null]::text[],
            '{"report.build": ["customer"]}'::jsonb, '{"report.build": ["card.number"]}'::jsonb);
        select millrace.kind_fields_set('report.build', array['customer']), millrace.kind_redactions_set('report.build', array['card.number']);
        select millrace.register_queues(array['default', 'mail', 'reports', 'slow']);
        select millrace.session_open(1, 'worker-a{evil}', 'host-1{evil}', 11, '1.4.0{evil}', null, array(select id from millrace.kind), 10, false);
        select millrace.session_open(2, 'worker-b', 'host-2', 12, '1.5.0', '{reports}', array(select id from millrace.kind), 20, false);
        -- 12 reports, of which some run, end well, fail and wait for another attempt, and die.
        select millrace.enqueue('report.build', jsonb_build_object('customer', 'c-' || i || '{evil}', 'card', '{"number": "4111111111111111"}'::jsonb, 'password', 'hunter2', 'key{evil}', 1), queue => 'reports',
            tags => array['night', 'tag{evil}'], tenant => 'acme{evil}', metadata => '{"trace": "t-1{jevil}"}') from generate_series(1, 12) i;
        select pg_temp.ended(1, 8, pg_temp.claimed(1, 8, 3, 'report.build'), 1, null, 0);
        select pg_temp.ended(1, 16, pg_temp.claimed(1, 16, 3, 'report.build'), 3, 'the printer 7 does not answer{evil}', 0);
        select pg_temp.ended(1, 24, pg_temp.claimed(1, 24, 2, 'report.build'), 4, 'connection to 10.0.0.7 was reset{evil}', 600);
        select pg_temp.claimed(1, 32, 2, 'report.build');
        insert into millrace.step (job, name, value, session, number, attempt, at)
        select j.id, n || '{evil}', '{"rows": "{jevil}"}', 1, 33, 1, now() + make_interval(secs => o) from unnest(array['load', 'draw', 'store']) with ordinality s(n, o),
               (select unnest(ids) as id from millrace.lease where session = 1 and number = 33) j;
        insert into millrace.step (job, name, value, session, number, attempt, at)
        select h.id, n || '{evil}', '{"rows": "{jevil}"}', 1, 17, 1, now() + make_interval(secs => o) from unnest(array['load', 'draw']) with ordinality s(n, o),
               millrace.history h where h.outcome = 3;
        insert into millrace.log_line (job, n, at, level, session, number, attempt, line)
        select unnest(ids), 1, now(), 1, 1, 33, 1, 'began with page 1{evil}' from millrace.lease where session = 1 and number = 33;
        select millrace.report((select jsonb_agg(jsonb_build_object('session', 1, 'number', 33, 'job', id, 'attempt', 1, 'age', 0, 'fraction', 0.4, 'stage', 'draw{evil}', 'note', 'page 4 of 10{evil}', 'lines', '[]'::jsonb, 'skipped', 0))
            from (select unnest(ids) as id from millrace.lease where session = 1 and number = 33) j));
        -- Others: later, cancelled, sealed, limited, waiting for each other.
        select millrace.enqueue('image.resize', '{"width": 40}', run_at => now() + interval '2 hours') from generate_series(1, 3);
        select millrace.cancel(millrace.enqueue('image.resize', '{"width": 41}', tags => array['cancelled']));
        select millrace.enqueue('image.resize', '{"$millrace": "sealed", "v": 1, "key": "k1", "data": "c2VjcmV0"}', queue => 'slow');
        select millrace.enqueue('image.resize', '{}', queue => 'slow', unique_key => 'one{evil}', limit_key => 'printer{evil}', priority => 2);
        select millrace.limit_set('queue', 'slow', '{"concurrency": 3}'), millrace.limit_set('tenant', 'acme{evil}', '{"rate": 5, "per": 60}');
        select millrace.pause('slow');
        select millrace.enqueue('image.resize', options => jsonb_build_object('after', jsonb_build_object('jobs', array[millrace.enqueue('image.resize', queue => 'slow')], 'when', 'succeeded')));
        -- One waits for a signal.
        select millrace.enqueue('order.pay', '{"order": 7}');
        with waiting as (delete from millrace.ready r using millrace.kind k where k.id = r.kind and k.name = 'order.pay' returning r.*),
            timed as (insert into millrace.timer (job, due, queue, kind, lane, attempt, crashes)
                      select w.job, now() + interval '1 day', w.queue, w.kind, w.lane, w.attempt, w.crashes from waiting w returning job, due)
        insert into millrace.wait (job, step, what, name, key, since, due, place, attempt, crashes)
        select t.job, 'await payment{evil}', 2, 'paid{evil}', 'order-7{evil}', now(), t.due, t.due, 0, 0 from timed t;
        select millrace.beat(1, 'working', 2, 0, 0), millrace.beat(2, 'draining', 0, 0, 0);
        insert into millrace.failure_note (first_at, at, session, queue, kind, error, failed, dead, jobs, lo, hi)
        select now() - interval '1 hour', now(), 1, min(queue), min(kind), error, 3, count(*) filter (where outcome = 3), array_agg(id), min(id), max(id) from millrace.history where error is not null group by error;
        select millrace.failures_fold();
        """#

    private static let rooms = #"""
        -- Schedules: open, paused, broken.
        select millrace.schedule_set('nightly', '0 3 * * *', 'report.build', '{"customer": "{jevil}", "password": "hunter2"}', zone => 'Europe/Vienna');
        select millrace.schedule_set('often', 'every 15 minutes', 'image.resize');
        select millrace.schedule_set('weekly', '0 9 * * 1', 'image.resize'), millrace.schedule_pause('weekly');
        select millrace.schedule_set('broken', '0 4 * * *', 'image.resize');
        update millrace.schedule set problem = 'the zone Mars/Olympus is unknown{evil}', problem_at = now() where name = 'broken';
        update millrace.schedule set next_at = now() + interval '3 hours', planned_from = now() where paused_at is null;
        insert into millrace.schedule_fire (schedule, fire_at, what, job, fired_at) select id, now() - interval '1 day', 'fired', 1, now() - interval '1 day' from millrace.schedule where name like 'nightly%';
        -- Providers.
        select count(*) from millrace.provider_flush(1, 'worker-a{evil}', '[{"provider": "resend", "class": "send", "generation": 1, "ok": 20, "failed": 4, "throttled": 1, "slow": 0, "unknown": 0, "latencies": [], "asked": 3, "vote": "it answers 500{jevil}", "quota_used": 90, "quota_limit": 100}]',
            '{"window_s": 60, "probes": 1, "voters": 2}', null);
        select millrace.provider_force('resend', 'open', 'they told us so{evil}', '1 hour');
        -- Mail.
        select millrace.grant_enqueue(current_user::text);
        select millrace.mail_send(array['ann@example.com'], 'Your report{evil}', 'The text{evil}', '<p>The text</p>', id => '0198c1f2-7a3e-7000-8000-000000000001', tenant => 'acme{evil}');
        select millrace.mail_send(array['bob@example.com'], 'Second', 'x', id => '0198c1f2-7a3e-7000-8000-000000000002');
        select millrace.mail_send(array['eve@example.com'], 'Third', 'x', id => '0198c1f2-7a3e-7000-8000-000000000003');
        update millrace.mail set status = 'parked', error = 'nobody knows whether it was sent{evil}', service = 'resend{evil}', template = 'welcome{evil}', attempts = 1, began_at = now() where id = '0198c1f2-7a3e-7000-8000-000000000001';
        update millrace.mail set status = 'delivered', sent_at = now(), service = 'resend' where id = '0198c1f2-7a3e-7000-8000-000000000002';
        insert into millrace.mail_attempt (message, n, provider, outcome, error, code, batch, key, at, ms) values ('0198c1f2-7a3e-7000-8000-000000000001', 1, 'resend{evil}', 'unknown', 'timed out{evil}', 'ETIMEDOUT{evil}', 1, 'k', now(), 5000);
        insert into millrace.mail_note (message, at, type, recipient, data, seen_at) values ('0198c1f2-7a3e-7000-8000-000000000001', now(), 'delivered{evil}', 'ann@example.com', '{"reason": "{jevil}"}', now());
        select millrace.template_publish('invoice', 'Bill {{number}}{evil}', '<p>{{number}}</p>', 'Bill {{number}}{evil}', '{"number": {"type": "text"}}', note => 'first{evil}');
        update millrace.template_version set checked_at = now(), awaited = false, problem = 'the variable name is unknown{evil}' where name = 'invoice';
        -- Documents.
        select millrace.document_register('https://files.example/a.pdf', 'Contract{evil}', id => '0198c1f2-7a3e-7000-8000-00000000000d', tenant => 'acme{evil}', actor => 'ann{evil}');
        update millrace.document set status = 'failed', stage = 'failed', reason = 'damaged{evil}', sentence = 'The file ends too early{evil}', pages = 2, pages_done = 1, pages_failed = 1, finished_at = now(), mime_type = 'application/pdf{evil}', size = 40000
          where id = '0198c1f2-7a3e-7000-8000-00000000000d';
        insert into millrace.document_page (document, page, status, stage, reason, sentence, words, confidence, cpu_ms, changed_at)
        values ('0198c1f2-7a3e-7000-8000-00000000000d', 1, 'done', 'ocr', null, null, 2, 91.5, 1200, now()), ('0198c1f2-7a3e-7000-8000-00000000000d', 2, 'failed', 'ocr', 'damaged{evil}', 'This page is damaged{evil}', null, null, 30, now());
        insert into millrace.document_content (document, page, config, text, content, search)
        values ('0198c1f2-7a3e-7000-8000-00000000000d', 1, 'simple', 'Hello world{evil}', '{"width": 800, "height": 600, "origin": "ocr", "confidence": 91.5, "blocks": [{"lines": [{"words": [
            {"text": "Hello{jevil}", "confidence": 96, "box": {"left": 80, "top": 60, "right": 240, "bottom": 100}}, {"text": "world", "confidence": 87, "box": {"left": 260, "top": 60, "right": 420, "bottom": 100}}]}]}]}', to_tsvector('Hello world'));
        -- Check-ins: one is armed, one has an alarm.
        select millrace.check_in_contact(p, 'mum{evil}', 1, '{"push": true}', actor => p), millrace.check_in_accept(p, true, actor => 'mum{evil}') from unnest(array['ann{evil}', 'bob{evil}']) p;
        select millrace.check_in_arm('ann{evil}', actor => 'ann{evil}');
        select millrace.check_in_alarm('bob{evil}', 'at the lake{evil}', 'bob{evil}');
        update millrace.alarm set problem = 'nobody can be reached{evil}';
        -- Quests, notices, webhooks.
        select millrace.family_create('fam-a', 'Europe/Vienna'), millrace.family_join('fam-a', 'ann', 'parent');
        select millrace.device_add('ann{evil}', 'fcm', 'token-of-ann', actor => 'ann{evil}');
        select millrace.notice_send('ann{evil}', 'quest_done', '{"name": "{jevil}"}');
        insert into millrace.notice (id, person, kind, data, status, due_at, created_at, channel, provider, attempts, error) values
            ('0198c1f2-7a3e-7000-8000-00000000000e', 'ann{evil}', 'reminder{evil}', '{}', 'failed', now(), now(), 'push{evil}', 'fcm{evil}', 3, 'the token is gone{evil}');
        select millrace.webhook_add('https://hooks.example/a', '{*}', handshake => false, given => '0198c1f2-7a3e-7000-8000-00000000000f');
        update millrace.webhook set url = url || '{evil}', state = 'disabled', reason = 'it answered 410{evil}', failing_since = now(), tenant = 'acme{evil}' where id = '0198c1f2-7a3e-7000-8000-00000000000f';
        insert into millrace.webhook_delivery (webhook, event, seq, state, due_at, attempts, code, error, first_at, done_at) values
            ('0198c1f2-7a3e-7000-8000-00000000000f', '0198c1f2-7a3e-7000-8000-0000000000e1', 1, 'failed', now(), 9, 410, 'gone{evil}', now(), now());
        -- Subscriptions: one by hand, one of a store that nobody owns, and messages that were refused.
        select millrace.subscription_plan_set('pro', '{"pages": 1000}', products => '{stripe:price_pro}'), millrace.subscription_set('pro', person => 'ann{evil}');
        insert into millrace.subscription (id, store, ref, product, state, status, period_end, created_at, changed_at) values
            ('0198c1f2-7a3e-7000-8000-0000000000b1', 'stripe', 'sub_1{evil}', 'price_old{evil}', 'grace', 'unpaid', now() - interval '1 hour', now() - interval '1 day', now());
        insert into millrace.subscription_event (store, id, subscription, type, at, rank, item, facts, arrived_at) values
            ('stripe', 'evt_1{evil}', '0198c1f2-7a3e-7000-8000-0000000000b1', 'customer.subscription.updated{evil}', now(), 100, 'sub_1',
             '{"status": "unpaid{jevil}", "product": "price_old{jevil}", "renews": true, "person": "hidden-person"}', now());
        select millrace.subscription_refused('stripe', left('no signature matches{evil}', 100), 3);
        -- Questions to people: one is open, one was answered.
        select millrace.approval_ask((select max(j.id) from millrace.job j join millrace.kind k on k.id = j.kind where k.name = 'report.build'), 'refund{evil}',
            '{"request": {"note": "{jevil}", "card": {"number": "4111111111111111"}}, "remind_seconds": 3600, "notify": ["ann", "boss@example.com"], "escalate_seconds": 7200, "escalate_to": ["eve"]}', 'acme{evil}', 'x', now());
        update millrace.approval set id = '0198c1f2-7a3e-7000-8000-0000000000a1';
        update millrace.approval_person set approval = '0198c1f2-7a3e-7000-8000-0000000000a1';
        select millrace.approval_answer(millrace.approval_ask((select max(id) from millrace.job), 'other', '{}', null, 'x', now()), true, 'ann{evil}', 'known{evil}');
        -- A bulk action, and the audit.
        select set_config('millrace.actor', 'ann at her desk{evil}', false);
        select millrace.operation_start('priority', '{"state": "ready", "tag": "tag{jevil}"}', '{"priority": 3}', 1000);
        select millrace.operation_step();
        select millrace.operation_start('cancel', '{"state": "scheduled"}');
        select millrace.console_search_save('night{evil}', jsonb_build_object('state', 'dead', 'tag', 'tag{evil}'));
        -- The past.
        insert into millrace.tally (at, session, queue, kind, succeeded, failed, dead, ms, wait_ms, waits, times)
        select now() - interval '5 s', s, q.id, k.id, 4, 0, 0, 900 * s, 90, 4, '14:1,2,1' from unnest('{1,2}'::bigint[]) s, millrace.queue q, millrace.kind k
         where q.name = 'default' and q.main is null and k.name = 'image.resize' and k.line = '';
        select millrace.sample_take();
        insert into millrace.fleet_event (at, event, subject, by, detail) values (now() - interval '4 minutes', 'deploy', 'worker-b{evil}', 'ann{evil}', '1.4.0 to 1.5.0{evil}');
        """#
}
