-- What of people is kept for a while only.

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
