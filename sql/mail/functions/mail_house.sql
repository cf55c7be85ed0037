-- A worker's housekeeping of mail: messages whose jobs ended without recording it, and contents that are no longer kept.

-- A mark of the last time, stored with the settings.
create or replace function millrace.mail_mark(the_name text, the_value text) returns void
language sql volatile as $$
    select millrace.setting_put(the_name, the_value)
$$;

-- A job that was quarantined, cancelled or given up says nothing to its message. Who is in doubt is parked for a human; the others are
-- told how they ended. How many there were.
create or replace function millrace.mail_forsaken() returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    t timestamptz := millrace.now();
    since timestamptz;
    one record;
    m millrace.mail;
    done int := 0;
begin
    if not millrace.turn_try('mail forsaken') then
        return 0;
    end if;
    since := coalesce((select s.value::timestamptz from millrace.setting s where s.name = 'mail_forsaken_at'), '-infinity');
    -- It includes again what was finished shortly before, because a transaction may have become visible late.
    for one in
        select h.outcome, h.error,
               case when j.args ? 'message' then (j.args ->> 'message')::uuid
                    else coalesce(millrace.mail_uuid(j.args ->> 'id'), millrace.mail_uuid(j.args #>> '{options,id}'), md5('millrace.mail:' || h.id)::uuid) end as message
          from millrace.history h join millrace.job j on j.id = h.id
         where h.outcome in (2, 3) and h.outcome <> 1 and h.finished > since - interval '5 minutes'
           and h.kind = any (array(select k.id from millrace.kind k where k.name like 'mail.%')) and jsonb_typeof(j.args) = 'object'
    loop
        select * into m from millrace.mail y where y.id = one.message and y.status in ('scheduled', 'queued', 'sending', 'unknown') for update;
        -- Run again since, or under way under another job.
        continue when not found or millrace.job_lives(m.job);
        done := done + 1;
        if m.batch is not null or m.status = 'unknown' then
            perform millrace.mail_raise(m.id, 'parked', 'parked', 'its job ended while nobody knew whether it was taken');
        elsif one.outcome = 2 then
            perform millrace.mail_raise(m.id, 'cancelled', 'cancelled', 'its job was cancelled');
        else
            update millrace.mail y set error_class = 'internal' where y.id = m.id;
            perform millrace.mail_raise(m.id, 'failed', 'failed', 'its job died: ' || left(coalesce(one.error, ''), 400));
            perform millrace.mail_told('emailFailed', m.service, m.template, false, 'internal');
        end if;
    end loop;
    -- In doubt, in no request, and without a job: nobody comes back to it, however that came about.
    for one in
        select y.id, y.job from millrace.mail y where y.status = 'unknown' and y.batch is null and y.changed_at < t - interval '1 minute' order by y.changed_at limit 1000
    loop
        select * into m from millrace.mail y where y.id = one.id and y.status = 'unknown' and y.batch is null for update;
        continue when not found or millrace.job_lives(m.job);
        done := done + 1;
        perform millrace.mail_raise(m.id, 'parked', 'parked', 'its job ended while nobody knew whether it was taken');
    end loop;
    perform millrace.mail_mark('mail_forsaken_at', t::text);
    return done;
end $$;
select millrace.door_is('mail', 'mail_forsaken', 'worker', 'staff');

create or replace function millrace.mail_uuid(given text) returns uuid
language sql immutable parallel safe as $$
    select case when given ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then given::uuid end
$$;

-- Contents, and what providers told, of messages that ended long ago; a page at a time, true when there may be more. That a message
-- was sent, by whom and when stays, as do its attempts: nothing in them says to whom or what.
create or replace function millrace.mail_retire(keep float8, page int default 500) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    until timestamptz := millrace.now() - make_interval(secs => keep);
    mark bigint;
    ids uuid[];
    old uuid[];
    upto bigint;
    looked int;
    more boolean := false;
    trimmed int;
    one record;
begin
    if not millrace.turn_try('mail retire') then
        return false;
    end if;
    mark := coalesce((select s.value::bigint from millrace.setting s where s.name = 'mail_retired'), 0);
    select array_agg(x.id), max(x.seq), count(*) into ids, upto, looked
      from (select m.id, m.seq, m.created_at from millrace.mail m where m.seq > mark order by m.seq limit page) x where x.created_at < until;
    if looked > 0 then
        -- Mail that is not sent yet is passed over here: the erasing caller comes back for it when it has ended.
        old := array(select m.id from millrace.mail m where m.id = any (ids) and m.status not in ('scheduled', 'queued', 'sending', 'unknown', 'parked') for update);
        for one in select r.blob, r.owner from millrace.blob_reference r where r.owner = any (select 'mail:' || i from unnest(old) i) loop
            perform millrace.blob_release(one.blob, one.owner);
        end loop;
        delete from millrace.mail_content c where c.message = any (old);
        delete from millrace.mail_note n where n.message = any (old);
        update millrace.mail m set error = null, domains = '{}', sender = null where m.id = any (old);
        perform millrace.mail_mark('mail_retired', upto::text);
        more := looked = page;
    end if;
    delete from millrace.mail_batch b where b.id in (select x.id from millrace.mail_batch x where x.state <> 'open' and x.first_at < until order by x.id limit page);
    get diagnostics trimmed = row_count;
    more := more or trimmed = page;
    delete from millrace.mail_change c where c.place in
        (select x.place from millrace.mail_change x where x.at < millrace.now() - interval '14 days' and x.seq is not null order by x.at limit page * 4);
    get diagnostics trimmed = row_count;
    more := more or trimmed = page * 4;
    delete from millrace.mail_tale x where x.id in (select y.id from millrace.mail_tale y where y.at < until - interval '400 days' order by y.at limit page * 4);
    return more;
end $$;
select millrace.door_is('mail', 'mail_retire', 'worker', 'staff');

-- Whose profile a mail goes by; null: nobody's. `the_person` is said to be the reader, by somebody who may act for it: with claims only the
-- person itself, else a back end. `the_user` is an account that the mail is about: for anybody else it is as if it were not there, so that no
-- mail to some address shows the language of another person.
create or replace function millrace.mail_reader(the_person text, the_user text, caller name) returns text
language plpgsql stable as $$
declare
    me text;
    claims jsonb;
begin
    if the_person is not null then
        perform millrace.valid_name(the_person, 'person');
        me := millrace.subject(mail_reader.caller);
        if me <> the_person then
            perform millrace.refuse('the person is not the subject of the claims', 'person', 'Leave it out, or name yourself.', '42501', 'permission');
        end if;
        return the_person;
    end if;
    claims := millrace.claims(mail_reader.caller);
    return case when case when claims is null then millrace.is_backend(mail_reader.caller)
                          else millrace.claims_count(mail_reader.caller) and claims ->> 'sub' = the_user end then the_user end;
end $$;

-- Normalises a mailbox: the part after a plus does not count, nor do the dots that Google ignores.
create or replace function millrace.consent_mailbox(mailbox text) returns text
language sql immutable as $$
    select case when x.host in ('gmail.com', 'googlemail.com') then replace(x.local, '.', '') || '@gmail.com' else x.local || '@' || x.host end
      from (select split_part(split_part(m.bare, '@', 1), '+', 1) as local, split_part(m.bare, '@', 2) as host
              from (select millrace.mail_bare(mailbox) as bare) m) x
$$;

-- A number is one, called or written to; devices are their person's.
create or replace function millrace.consent_hash(channel text, address text, contact text) returns bytea
language sql stable as $$
    select case when channel = 'mail' then millrace.keyed_hash('mail', millrace.consent_mailbox(address))
                when channel = 'push' then millrace.keyed_hash('person', contact)
                else millrace.keyed_hash('tel', address) end
$$;

create or replace function millrace.mail_is_read_by(the_mail uuid, the_person text) returns void
language sql volatile as $$
    update millrace.mail m set person = the_person where m.id = the_mail
$$;

-- The kinds of this room's jobs, which name its rows.
create or replace function millrace.mail_kinds() returns setof text
language sql immutable parallel safe as 'select ''mail.%''';

-- Jobs of this room name their row by this argument, and keep it when a person is erased: see jobs_erase_person.
create or replace function millrace.mail_keeps() returns setof text
language sql immutable parallel safe as 'select ''message''';
