-- Shared protections of people: hashes of names that cannot be reversed, and daily limits.

create or replace function millrace.keyed_hash(kind text, value text) returns bytea
language sql stable as $$
    select sha256(convert_to((select s.value from millrace.setting s where s.name = 'mail_salt') || chr(31) || kind || ':' || value, 'UTF8'))
$$;

create or replace function millrace.today_utc() returns date
language sql stable as $$
    select (millrace.now() at time zone 'UTC')::date
$$;

-- Counts one more for today; false when that would be more than `most`.
create or replace function millrace.day_take(the_what text, the_who bytea, most int) returns boolean
language plpgsql volatile as $$
begin
    if most < 1 then
        return false;
    end if;
    insert into millrace.day_count as c (what, who, day, n) values (the_what, the_who, millrace.today_utc(), 1)
        on conflict (what, who, day) do update set n = c.n + 1 where c.n < most;
    return found;
end $$;

-- What was taken of today.
create or replace function millrace.day_used(the_what text, the_who bytea) returns int
language sql stable as $$
    select coalesce((select c.n from millrace.day_count c where c.what = the_what and c.who = the_who and c.day = millrace.today_utc()), 0)
$$;

-- Takes `amount` of today; false when that would be more than `most`.
create or replace function millrace.day_use(the_what text, the_who bytea, amount int, most bigint) returns boolean
language plpgsql volatile as $$
begin
    if amount > most then
        return false;
    end if;
    insert into millrace.day_count as c (what, who, day, n) values (the_what, the_who, millrace.today_utc(), amount)
        on conflict (what, who, day) do update set n = c.n + excluded.n where c.n + excluded.n <= most;
    return found;
end $$;

create or replace function millrace.day_give_back(the_what text, the_who bytea) returns void
language sql volatile as $$
    update millrace.day_count c set n = c.n - 1 where c.what = the_what and c.who = the_who and c.day = millrace.today_utc() and c.n > 0
$$;

create or replace function millrace.day_must_take(the_what text, the_who bytea, most int, sentence text, field text, hint text default '') returns void
language plpgsql volatile as $$
begin
    if not millrace.day_take(the_what, the_who, most) then
        perform millrace.refuse_quota(sentence, field, hint || format('At most %s a day; the next day begins at midnight UTC.', most), most, most,
            (millrace.today_utc() + 1)::timestamp at time zone 'UTC');
    end if;
end $$;

create or replace function millrace.people_expire(most int default 20000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    n bigint;
    gone bigint;
begin
    delete from millrace.day_count c
     where c.ctid = any (array(select x.ctid from millrace.day_count x where x.day < millrace.today_utc() - 1 order by x.day limit most));
    get diagnostics gone = row_count;
    delete from millrace.consent_link l
     where l.ctid = any (array(select x.ctid from millrace.consent_link x where x.at < millrace.now() - interval '1 year' order by x.at limit most));
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.family_invitation i
     where i.ctid = any (array(select x.ctid from millrace.family_invitation x where x.expires_at < millrace.now() order by x.expires_at limit most));
    get diagnostics n = row_count;
    return gone + n;
end $$;

-- Joins in person_erase, behind the rooms, which have called off what they wanted done. Jobs of the person's own tenant lose its name, and those that have
-- ended all that they carried. One that still waits is the app's work, and goes on. Reads all jobs, if there are such at all.
create or replace function millrace.jobs_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    lines int[] := array(select q.id from millrace.queue q where q.tenant = millrace.personal_tenant(jobs_erase_person.person));
    nobody text := 'erased:' || gen_random_uuid();
    ids bigint[];
begin
    if lines = '{}' then
        return 0;
    end if;
    ids := array(select j.id from millrace.job j where j.queue = any (lines));
    ids := array(select i from unnest(ids) i where (select v.state from millrace.job(i) v) in ('succeeded', 'cancelled', 'dead'));
    update millrace.job j set tenant = nobody, args = case when j.args ?| array['message', 'document', 'subscription'] then j.args else '{}' end, metadata = null, tags = null
     where j.id = any (ids);
    update millrace.history h set error = 'erased' where h.id = any (ids) and h.error is not null;
    delete from millrace.log_line l where l.job = any (ids);
    -- What is still to be undone is replayed from them: see step_undone.
    delete from millrace.step s where s.job = any (ids) and not exists (select from millrace.undo u where u.job = s.job);
    delete from millrace.result r where r.job = any (ids);
    delete from millrace.output o where o.job = any (ids);
    delete from millrace.published p where p.job = any (ids);
    delete from millrace.job_field x where x.job = any (ids);
    update millrace.progress p set stage = null, note = null where p.job = any (ids) and (p.stage is not null or p.note is not null);
    -- A line without jobs that wait is nobody's.
    update millrace.queue q set tenant = nobody where q.id = any (lines) and not exists (select from millrace.job j where j.queue = q.id and j.tenant = millrace.personal_tenant(jobs_erase_person.person));
    return cardinality(ids);
end $$;
