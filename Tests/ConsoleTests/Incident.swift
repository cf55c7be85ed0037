import Postgres
import TestSupport

/// A payment service that answers no more since a new build went out, on a fleet of three workers: what somebody on call opens the console for.
/// Also the picture of the README.
enum Incident {
    /// The engine must know no job yet.
    static func fill(_ connection: Connection) async throws {
        for sql in [Seed.runs, fleet] { try await connection.run(sql) }
    }

    private static let fleet = #"""
        select millrace.register_kinds(array['payment.capture', 'invoice.render', 'image.resize', 'receipt.send', 'report.build', 'search.index'], array_fill(null::text, '{6}'));
        select millrace.register_queues(array['default', 'payments', 'images', 'reports', 'search']);
        select millrace.session_open(1, 'worker-a', 'host-1', 11, '2.4.0', null, array(select id from millrace.kind), 40, true);
        select millrace.session_open(2, 'worker-b', 'host-2', 12, '2.4.1', null, array(select id from millrace.kind), 40, true);
        select millrace.session_open(3, 'worker-c', 'host-3', 13, '2.4.1', null, array(select id from millrace.kind), 40, true);
        update millrace.process set started_at = now() - case session when 1 then interval '3 days' else interval '12 minutes' end;
        -- Jobs that wait, run, and died.
        select millrace.enqueue(k.kind, jsonb_build_object('order', 4000 + i), queue => k.queue) from (values ('payment.capture', 'payments', 90), ('image.resize', 'images', 40),
            ('report.build', 'reports', 30), ('search.index', 'search', 25)) k(kind, queue, n), generate_series(1, k.n) i;
        select millrace.enqueue('invoice.render', jsonb_build_object('order', i), run_at => now() + interval '20 minutes') from generate_series(1, 12) i;
        select pg_temp.claimed(1, 32, 14, 'image.resize'), pg_temp.claimed(2, 64, 9, 'search.index');
        select pg_temp.ended(2, 96, pg_temp.claimed(2, 96, 40, 'payment.capture'), 3, 'card_declined: the bank answered 502 for charge ch_3QK81x', 0);
        select millrace.pause('reports');
        update millrace.queue set paused_at = now() - interval '26 minutes' where name = 'reports' and main is null;
        update millrace.lease set at = now() - interval '42 seconds' where session = 1;
        update millrace.job j set enqueued_at = now() - case when exists (select from millrace.lease l where j.id = any (l.ids)) then interval '47 seconds' else interval '11 minutes' end;
        -- Those of the first worker are in the middle of their steps.
        insert into millrace.step (job, name, value, session, number, attempt, at)
        select j.id, s.name, s.value, 1, 33, 1, now() - make_interval(secs => s.ago)
          from (values ('fetch', '{"bytes": 8123904}'::jsonb, 38), ('decode', '{"width": 6000, "height": 4000}', 29), ('scale 1600', '{"bytes": 412331}', 12)) s(name, value, ago),
               (select unnest(l.ids) as id from millrace.lease l where l.session = 1) j;
        select millrace.report((select jsonb_agg(jsonb_build_object('session', 1, 'number', 33, 'job', j.id, 'attempt', 1, 'age', 0, 'fraction', 0.75, 'stage', 'scale 800', 'note', 'row 3000 of 4000',
            'lines', '[]'::jsonb, 'skipped', 0)) from (select unnest(l.ids) as id from millrace.lease l where l.session = 1) j));
        -- A flow: an album of four pictures, its report, and what follows that.
        with pictures as materialized (
            select jsonb_agg(millrace.enqueue('image.resize', jsonb_build_object('width', 100 * i), queue => 'images')) as ids from generate_series(1, 4) i
        ), report as materialized (
            select millrace.enqueue('report.build', '{"album": 7}', options => jsonb_build_object('after', p.ids)) as id from pictures p
        ) select millrace.enqueue(k.kind, '{"album": 7}', options => jsonb_build_object('after', jsonb_build_array(r.id))) from report r, (values ('receipt.send'), ('search.index')) k(kind);
        select millrace.beat(1, 'working', 14, 0, 0), millrace.beat(2, 'working', 9, 0, 0), millrace.beat(3, 'working', 0, 0, 0);
        update millrace.beat set at = now() + case session when 3 then interval '-4 minutes' else interval '10 minutes' end;
        -- A provider that is not called any more, and a schedule that cannot fire.
        select count(*) from millrace.provider_flush(2, 'worker-b', '[{"provider": "stripe", "class": "charge", "generation": 1, "ok": 20, "failed": 44, "throttled": 0, "slow": 0, "unknown": 0, "latencies": [], "asked": 3, "vote": "44 of 64 calls answered 502", "quota_used": 64, "quota_limit": 5000}]',
            '{"window_s": 60, "probes": 1, "voters": 2}', null);
        update millrace.provider_circuit set changed_at = now() - interval '11 minutes', until = now() + interval '10 minutes' where provider = 'stripe';
        select millrace.schedule_set('nightly-report', '0 3 * * *', 'report.build', zone => 'Europe/Vienna');
        update millrace.schedule set problem = 'the zone Europe/Wien is unknown', problem_at = now() - interval '9 minutes' where name = 'nightly-report';
        -- What failed, by cause.
        insert into millrace.failure_note (first_at, at, session, queue, kind, error, failed, dead, jobs, lo, hi)
        select now() - case when e.i < 4 then interval '11 minutes' else make_interval(hours => e.i::int) end, now() - make_interval(secs => 7 * e.i), 2,
               (select min(q.id) from millrace.queue q where q.name = 'payments'), (select k.id from millrace.kind k where k.name = e.kind), e.error, 400 / e.i, 40 / e.i, '{1}', 1, 1
          from (select row_number() over () as i, x.* from (values
            ('payment.capture', 'card_declined: the bank answered 502 for charge ch_3QK81x'), ('payment.capture', 'no answer from api.stripe.com within 10 s'),
            ('receipt.send', 'charge 8812 has no receipt yet'), ('image.resize', 'the file ends after 8192 of 40960 bytes'), ('image.resize', 'the color space CMYK is not supported'),
            ('invoice.render', 'the variable total is missing'), ('search.index', 'the index is read-only'), ('report.build', 'canceling statement due to statement timeout'),
            ('report.build', 'out of memory at page 120'), ('search.index', 'connection reset by peer'), ('receipt.send', 'mailbox full'), ('receipt.send', 'the address has no domain'),
            ('image.resize', 'width must be at least 1'), ('payment.capture', 'the currency XAU is not accepted'), ('payment.capture', 'the customer has been deleted'),
            ('invoice.render', 'the font Inter cannot be loaded'), ('search.index', 'document too large'), ('report.build', 'division by zero'), ('report.build', 'deadlock detected'),
            ('image.resize', 'the host images.example is unknown'), ('receipt.send', 'greylisted, try again later'), ('invoice.render', 'the template invoice has no version 9'),
            ('search.index', 'the analyzer german is unknown'), ('payment.capture', 'the amount is below the minimum'), ('report.build', 'disk quota exceeded'),
            ('image.resize', 'the picture is animated')) x(kind, error)) e;
        select millrace.failures_fold();
        -- An hour of samples: all was well until twelve minutes ago.
        select millrace.sample_put(1, p.at, array[1, p.ready, 0, 12, p.running, 0, p.oldest, 0, p.ready, 0, 0, p.running / 2, 0, p.oldest], array['', 'payments']),
               millrace.sample_put(2, p.at, array[p.good, p.bad, p.bad / 9, 0, 0, p.good * 140 + p.bad * 900, p.oldest * 900, 0, p.good, p.bad, p.bad / 9, 0, 0, p.good * 140 + p.bad * 900, p.oldest * 900, 0],
                   array['', 'payment.capture'], array['', p.version], array['', 'payments'])
          from (select date_bin('10 s', now(), '2000-01-01 00:00+00') - make_interval(secs => 10 * (359 - i)) as at, case when i < 288 then '2.4.0' else '2.4.1' end as version,
                       (case when i < 288 then 35 + abs(hashint4(i)) % 7 else 35 + (i - 288) * 5 / 4 end + 8 * sin(i / 9.0))::bigint as ready, (22 + 3 * sin(i / 5.0))::bigint as running,
                       (case when i < 288 then 9 + i % 4 else 9 + (i - 288) * 9 end)::bigint as oldest,
                       (case when i < 288 then 420 else 290 end + 45 * sin(i / 23.0) + abs(hashint4(i)) % 40)::bigint as good, (case when i < 288 then i % 3 else 70 + i % 9 + least(60, i - 288) end)::bigint as bad
                  from generate_series(0, 359) i) p;
        insert into millrace.tally (at, session, queue, kind, succeeded, failed, dead, ms, wait_ms, waits, times)
        select now() - make_interval(secs => 10 * i), 2, (select min(q.id) from millrace.queue q where q.name = 'payments'), (select k.id from millrace.kind k where k.name = 'payment.capture'),
               290, 96, 11, 40000, 900, 290, '14:200,90' from generate_series(0, 28) i;
        """#
}
