-- Whether the owner of an address agrees to be a contact. Nobody is told anything before that, and requests are limited: an asker asks an
-- address at most five times and once a day, however it names and renames its contacts; and there is a daily limit for each asker, and for
-- each address over all askers.

create or replace function millrace.consent_blocked(the_address bytea) returns boolean
language sql stable as $$
    select exists (select from millrace.consent_never n where n.address = the_address)
$$;

-- The daily limit of requests: by one asker, or to one address.
create or replace function millrace.consent_cap(the_cap text) returns int
language sql stable as $$
    select coalesce((select s.value::int from millrace.setting s where s.name = 'consent_' || the_cap), case the_cap when 'asker_day' then millrace.counted('questions') else millrace.counted('askers') end)
$$;

-- {"asker_day": 10, "address_day": 3}; names that are left out stay as they are. False: it was so already.
create or replace function millrace.check_in_rules_set(rules jsonb, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one record;
    changed boolean := false;
begin
    if rules is null or jsonb_typeof(rules) <> 'object' then
        perform millrace.refuse('rules is not a JSON object', 'rules', 'Give {"asker_day": 10, "address_day": 3}.');
    end if;
    for one in select e.key, e.value from jsonb_each(rules) e order by 1 loop
        if one.key not in ('asker_day', 'address_day') then
            perform millrace.refuse(format('the rule %L is unknown', left(one.key, 60)), 'rules', 'Allowed: asker_day and address_day.');
        end if;
        if jsonb_typeof(one.value) <> 'number' or one.value #>> '{}' !~ '^[0-9]{1,6}$' then
            perform millrace.refuse(format('%s is not a whole number from 0 to 999999', one.key), 'rules', 'Give how many questions a day; 0 for none.');
        end if;
        changed := millrace.setting_put('consent_' || one.key, one.value #>> '{}') or changed;
    end loop;
    if changed then
        perform millrace.audited('check_in.rules', null, rules, caller => check_in_rules_set.caller);
    end if;
    return changed;
end $$;
select millrace.door_is('checkins', 'check_in_rules_set', 'worker', 'staff', audited => true,
    who_may => array['set the limits of questions: staff']);

-- Counts one question; or says until when there is to be none.
create or replace function millrace.consent_take(the_person text, the_address bytea, t timestamptz) returns timestamptz
language plpgsql volatile as $$
declare
    the_asker bytea := millrace.keyed_hash('asker', the_person);
    c millrace.consent_ask;
    tomorrow timestamptz := (millrace.today_utc() + 1)::timestamp at time zone 'UTC';
begin
    if millrace.consent_blocked(the_address) then
        return 'infinity';
    end if;
    select * into c from millrace.consent_ask x where x.asker = the_asker and x.address = the_address for no key update;
    if c.asks >= millrace.counted('questions_again') then
        return 'infinity';
    end if;
    if c.asked_at > t - interval '1 day' then
        return c.asked_at + interval '1 day';
    end if;
    if not millrace.day_take('consent_asker', the_asker, millrace.consent_cap('asker_day')) then
        return tomorrow;
    end if;
    if not millrace.day_take('consent_address', the_address, millrace.consent_cap('address_day')) then
        perform millrace.day_give_back('consent_asker', the_asker);
        return tomorrow;
    end if;
    insert into millrace.consent_ask as x (asker, address, asks, asked_at) values (the_asker, the_address, 1, t)
        on conflict (asker, address) do update set asks = x.asks + 1, asked_at = t where x.asks < millrace.counted('questions_again') and x.asked_at <= t - interval '1 day';
    if not found then                                      -- the same asker, on another connection, a moment ago
        perform millrace.day_give_back('consent_asker', the_asker), millrace.day_give_back('consent_address', the_address);
        return t + interval '1 day';
    end if;
    return null;
end $$;

-- Asks at each address that has not answered, as far as the limits allow; each of the others says until when it is held.
create or replace function millrace.consent_ask(the_person text, the_contact text, t timestamptz) returns int
language plpgsql volatile as $$
declare
    d millrace.watch_address;
    until timestamptz;
    n int := 0;
begin
    for d in
        select * from millrace.watch_address x
         where x.person = the_person and x.contact = the_contact and x.verified_at is null and x.declined_at is null
         order by x.channel for no key update
    loop
        until := millrace.consent_take(the_person, d.hash, t);
        if until is not null then
            update millrace.watch_address x set held_until = until where x.ref = d.ref;
            continue;
        end if;
        update millrace.watch_address x set asked_at = t, asks = x.asks + 1, held_until = null where x.ref = d.ref;
        insert into millrace.consent_link as l (ref, address, at) values (d.ref, d.hash, t) on conflict (ref) do update set at = excluded.at;
        perform millrace.notice_put(d.contact, 'alarm.consent', d.channel, d.address,
            millrace.consent_words(d.person, d.contact, d.channel) || jsonb_build_object('person', d.person, 'ref', d.ref, 'stage', 'consent'),
            'consent:' || d.ref || ':' || d.asks + 1, t, t + interval '7 days', false);
        perform millrace.checkin_changed(d.person, null, 'asked', jsonb_build_object('contact', d.contact, 'channel', d.channel));
        n := n + 1;
    end loop;
    return n;
end $$;

-- Withdraws requests to addresses of this contact that are not kept: nobody could answer them, and they name the asker.
create or replace function millrace.consent_withdraw(the_person text, the_contact text, kept jsonb) returns void
language sql volatile as $$
    select millrace.notices_drop(array(
        select m.id from millrace.notice m join millrace.watch_address d on m.person = d.contact and m.key like 'consent:' || d.ref || ':%'
         where d.person = the_person and d.contact = the_contact and not (kept ? d.channel and (d.channel = 'push' or kept ->> d.channel = d.address))))
$$;

-- The answer by the link that was sent to an address: yes or no, at any time. No is always accepted, even from the last contact.
create or replace function millrace.check_in_consent(ref uuid, agrees boolean) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    d millrace.watch_address;
begin
    select * into d from millrace.watch_address x where x.ref = check_in_consent.ref for no key update;
    if not found or check_in_consent.agrees is null then
        perform millrace.refuse('there is no such contact', 'ref', null, 'P0002', 'not_found');
    end if;
    if check_in_consent.agrees and millrace.consent_blocked(d.hash) then
        perform millrace.refuse('this address has refused all further requests', 'ref', 'An operator lifts that with consent_unblock.', '55000', 'wrong_state');
    end if;
    -- A number that answers in writing may be called, too.
    perform millrace.consent_set(array(select x.ref from millrace.watch_address x
        where x.person = d.person and x.contact = d.contact and x.hash = d.hash for no key update), check_in_consent.agrees, 'link');
    return check_in_consent.agrees;
end $$;
select millrace.door_is('checkins', 'check_in_consent', 'worker', 'staff',
    who_may => array['say by a link that an address agrees: staff']);

-- Nobody sends another request to this address, for any contact or person. Agreements given there end.
create or replace function millrace.consent_never_set(the_address bytea, the_way text) returns boolean
language plpgsql volatile as $$
declare
    refs uuid[];
    is_new boolean;
begin
    insert into millrace.consent_never (address, at, how) values (the_address, millrace.now(), the_way) on conflict do nothing;
    is_new := found;
    refs := array(select d.ref from millrace.watch_address d where d.hash = the_address order by d.ref for no key update);
    perform millrace.consent_set(refs, false, 'never');
    return is_new;
end $$;

-- The hash of the address that a link was sent to; null: there was no such link.
create or replace function millrace.consent_address(the_ref uuid) returns bytea
language sql stable as $$
    select coalesce((select d.hash from millrace.watch_address d where d.ref = the_ref), (select l.address from millrace.consent_link l where l.ref = the_ref))
$$;

-- The answer “never again” by the link, even after the contact was removed. False: it was given before.
create or replace function millrace.check_in_never(ref uuid) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    the_address bytea := millrace.consent_address(check_in_never.ref);
begin
    if the_address is null then
        perform millrace.refuse('there is no such contact', 'ref', null, 'P0002', 'not_found');
    end if;
    return millrace.consent_never_set(the_address, 'link');
end $$;
select millrace.door_is('checkins', 'check_in_never', 'worker', 'staff',
    who_may => array['say by a link that an address never agrees: staff']);

-- Takes “never again” back, by the link and if it was given by a link. Agreements that ended with it stay ended. False: there is nothing to take back.
create or replace function millrace.check_in_never_undo(ref uuid) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    the_address bytea := millrace.consent_address(check_in_never_undo.ref);
begin
    if the_address is null then
        perform millrace.refuse('there is no such contact', 'ref', null, 'P0002', 'not_found');
    end if;
    delete from millrace.consent_never n where n.address = the_address and n.how = 'link';
    return found;
end $$;
select millrace.door_is('checkins', 'check_in_never_undo', 'worker', 'staff');

-- For an operator: the channel is mail, sms, voice, or push with a person's id.
create or replace function millrace.consent_block(channel text, address text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not millrace.consent_never_set(millrace.consent_named(consent_block.channel, consent_block.address), 'operator') then
        return false;
    end if;
    perform millrace.audited('consent.block', millrace.audit_address(consent_block.address), jsonb_build_object('channel', consent_block.channel), caller => consent_block.caller);
    return true;
end $$;
select millrace.door_is('checkins', 'consent_block', 'admin', 'staff', audited => true,
    who_may => array['block an address from questions: staff']);

-- False: there was no block. A contact that has declined stays declined until it is asked again.
create or replace function millrace.consent_unblock(channel text, address text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from millrace.consent_never n where n.address = millrace.consent_named(consent_unblock.channel, consent_unblock.address);
    if not found then
        return false;
    end if;
    perform millrace.audited('consent.unblock', millrace.audit_address(consent_unblock.address), jsonb_build_object('channel', consent_unblock.channel), caller => consent_unblock.caller);
    return true;
end $$;
select millrace.door_is('checkins', 'consent_unblock', 'admin', 'staff', audited => true,
    who_may => array['lift that: staff']);

create or replace function millrace.consent_named(channel text, address text) returns bytea
language plpgsql stable as $$
begin
    if channel is null or channel not in ('mail', 'sms', 'voice', 'push') then
        perform millrace.refuse(format('the channel %L is unknown', left(channel, 60)), 'channel', 'Allowed: mail, sms, voice and push.');
    end if;
    if address is null or length(address) not between 1 and 576 then
        perform millrace.refuse('the address is missing or too long', 'address', 'Give a mail address, a number as +4915112345678, or a person''s id for push.');
    end if;
    if channel = 'mail' then
        perform millrace.mail_check_mailbox(address, 'address');
    end if;
    return millrace.consent_hash(channel, address, address);
end $$;

-- What is answered is not asked: requests that have not gone out are taken back.
create or replace function millrace.consent_set(refs uuid[], agrees boolean, how text) returns int
language plpgsql volatile as $$
declare
    t timestamptz := millrace.now();
    n int;
begin
    perform millrace.notices_stop(array(
        select n.id from millrace.watch_address d
          join millrace.notice n on n.person = d.contact and n.key > 'consent:' || d.ref || ':' and n.key < 'consent:' || d.ref || ';' and n.status = 'pending'
         where d.ref = any (refs)));
    with changed as (
        update millrace.watch_address d
           set verified_at = case when agrees then coalesce(d.verified_at, t) end, declined_at = case when not agrees then t end, held_until = null
         where d.ref = any (refs) and case when agrees then d.verified_at is null or d.declined_at is not null else d.declined_at is null end
        returning d.person, d.contact, d.channel
    ), said as (
        insert into millrace.checkin_change (at, person, change, data)
        select t, c.person, case when agrees then 'consent_given' else 'consent_declined' end,
               jsonb_build_object('contact', c.contact, 'channel', c.channel, 'how', how) from changed c
    )
    select count(*) into n from changed;
    return n;
end $$;

-- A contact with an account says yes or no to push on its own devices, and no to everything else, too. The number of addresses changed.
create or replace function millrace.check_in_accept(person text, agrees boolean, actor text default null, caller millrace.caller_name default current_user) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(check_in_accept.actor, caller => check_in_accept.caller);
    refs uuid[];
begin
    perform millrace.valid_name(check_in_accept.person, 'person');
    refs := array(select d.ref from millrace.watch_address d
                   where d.person = check_in_accept.person and d.contact = me and (d.channel = 'push' or not check_in_accept.agrees) for no key update);
    if cardinality(refs) = 0 or check_in_accept.agrees is null then
        perform millrace.refuse('this person has not named the actor as a contact', 'person', null, 'P0002', 'not_found');
    end if;
    if check_in_accept.agrees and millrace.consent_blocked(millrace.keyed_hash('person', me)) then
        perform millrace.refuse('this account has refused all further requests', 'actor', 'An operator lifts that with consent_unblock.', '55000', 'wrong_state');
    end if;
    return millrace.consent_set(refs, check_in_accept.agrees, 'account');
end $$;
select millrace.door_is('checkins', 'check_in_accept', 'client, worker', 'actor person',
    'Says yes or no to being somebody''s contact.',
    who_may => array['agree to be their contact: contact, back end, staff']);

-- For an operator who learned of the agreement in another way, by telephone or on paper.
create or replace function millrace.check_in_confirm(person text, contact text, channels text[] default null) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    refs uuid[];
begin
    refs := array(select d.ref from millrace.watch_address d
                   where d.person = check_in_confirm.person and d.contact = check_in_confirm.contact
                     and (check_in_confirm.channels is null or d.channel = any (check_in_confirm.channels)) for no key update);
    if cardinality(refs) = 0 then
        perform millrace.refuse('there is no such contact or channel', 'contact', null, 'P0002', 'not_found');
    end if;
    return millrace.consent_set(refs, true, 'operator');
end $$;
select millrace.door_is('checkins', 'check_in_confirm', 'worker', 'staff',
    who_may => array['confirm one of their contacts as an operator: staff']);

-- Asks again at addresses without an answer; returns how many.
create or replace function millrace.check_in_consent_ask(person text, contact text, actor text default null, caller millrace.caller_name default current_user) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.acts_as_person(check_in_consent_ask.actor, check_in_consent_ask.person, caller => check_in_consent_ask.caller);
    return millrace.consent_ask(check_in_consent_ask.person, check_in_consent_ask.contact, millrace.now());
end $$;
select millrace.door_is('checkins', 'check_in_consent_ask', 'client, worker', 'actor person',
    'Asks a contact for consent again.', who_may => array['ask one of their contacts again: itself, back end, staff']);

-- Addresses from before they were counted by their hashes; and how often those had been asked.
do $$
begin
    if exists (select from millrace.watch_address d where d.hash is null) then
        update millrace.watch_address d set hash = millrace.consent_hash(d.channel, d.address, d.contact) where d.hash is null;
        insert into millrace.consent_ask (asker, address, asks, asked_at)
        select millrace.keyed_hash('asker', d.person), d.hash, least(max(d.asks), 5), max(d.asked_at)
          from millrace.watch_address d where d.asks > 0 and d.asked_at is not null group by 1, 2
            on conflict do nothing;
        insert into millrace.consent_link (ref, address, at)
        select d.ref, d.hash, d.asked_at from millrace.watch_address d where d.asked_at is not null on conflict do nothing;
    end if;
end $$;

create or replace function millrace.consents_expire(most int default 20000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    gone bigint;
begin
    delete from millrace.consent_link l
     where l.ctid = any (array(select x.ctid from millrace.consent_link x where x.at < millrace.now() - interval '1 year' order by x.at limit most));
    get diagnostics gone = row_count;
    return gone;
end $$;
