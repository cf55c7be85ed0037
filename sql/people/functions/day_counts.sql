-- Daily limits, and hashes of names that cannot be reversed.

create or replace function millrace.keyed_hash(kind text, value text) returns bytea
language sql stable as $$
    select sha256(convert_to((select s.value from millrace.setting s where s.name = 'salt') || chr(31) || kind || ':' || value, 'UTF8'))
$$;

create or replace function millrace.today_utc() returns date
language sql stable as $$
    select (millrace.now() at time zone 'UTC')::date
$$;

-- Every refusal because of a quota is made here: how much is allowed, how much is used, and when the next period begins (null: never).
create or replace function millrace.refuse_quota(
    sentence text, field text, hint text, allowed numeric, used numeric, reset_date timestamptz default null
) returns void
language plpgsql as $$
begin
    raise exception using
        message = sentence,
        errcode = '53400',
        hint = coalesce(hint, ''),
        detail = json_build_object('error', 'quota', 'field', field, 'limit', allowed, 'used', used, 'reset_date', reset_date)::text;
end $$;

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

-- What was taken of today.
create or replace function millrace.day_used(the_what text, the_who bytea) returns int
language sql stable as $$
    select coalesce((select c.n from millrace.day_count c where c.what = the_what and c.who = the_who and c.day = millrace.today_utc()), 0)
$$;

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

create or replace function millrace.day_counts_expire(most int default 20000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    gone bigint;
begin
    delete from millrace.day_count c
     where c.ctid = any (array(select x.ctid from millrace.day_count x where x.day < millrace.today_utc() - 1 order by x.day limit most));
    get diagnostics gone = row_count;
    return gone;
end $$;

create or replace function millrace.day_give_back_of(the_what text, the_who bytea, the_day date, amount int) returns void
language sql volatile as $$
    update millrace.day_count c set n = greatest(0, c.n - amount) where c.what = the_what and c.who = the_who and c.day = the_day
$$;

-- Locks these counts, in one order, so that two callers that use several do not wait for each other.
create or replace function millrace.days_lock(whats text[], whose bytea[], days date[]) returns void
language plpgsql volatile as $$
begin
    insert into millrace.day_count (what, who, day, n)
    select distinct x.what, x.who, x.day, 0 from unnest(whats, whose, days) x(what, who, day) order by 1, 2, 3
        on conflict do nothing;
    perform from millrace.day_count c join unnest(whats, whose, days) x(what, who, day) on c.what = x.what and c.who = x.who and c.day = x.day
      order by c.what, c.who, c.day for update of c;
end $$;
