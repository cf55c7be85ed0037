-- Who is told when somebody does not check in. A contact is named by its person id if it has an account, else by any name. Each address
-- counts from when whoever it belongs to has said yes.

create or replace function millrace.check_in_contact(
    person text, contact text, step int, channels jsonb, wait interval default '5 min', actor text default null, caller millrace.caller_name default current_user
) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    reached boolean;
    one record;
    verified int;
begin
    perform millrace.quest_acts_as(check_in_contact.actor, check_in_contact.person, caller => check_in_contact.caller);
    reached := cardinality(millrace.watch_steps(check_in_contact.person)) > 0;
    perform millrace.quest_name(check_in_contact.contact, 'contact');
    perform millrace.watch_span(check_in_contact.wait, 'wait', 1, 86400);
    if check_in_contact.contact = check_in_contact.person then
        perform millrace.refuse('nobody is their own contact', 'contact', 'Name somebody else.');
    end if;
    if check_in_contact.step is null or check_in_contact.step not between 1 and 20 then
        perform millrace.refuse('step is out of range', 'step', 'Give 1, who is told first, to 20.');
    end if;
    if check_in_contact.channels is null or jsonb_typeof(check_in_contact.channels) <> 'object' or check_in_contact.channels = '{}' then
        perform millrace.refuse('channels is no object with a channel', 'channels', 'Give {"mail": "a@example.com", "sms": "+4915112345678", "push": true}.');
    end if;
    for one in select e.key, e.value from jsonb_each(check_in_contact.channels) e loop
        case one.key
        when 'mail' then
            perform millrace.mail_check_mailbox(one.value #>> '{}', 'channels');
        when 'sms', 'voice' then
            if jsonb_typeof(one.value) <> 'string' or one.value #>> '{}' !~ E'^\\+[1-9][0-9]{6,14}$' then
                perform millrace.refuse(format('%s is no telephone number', one.key), 'channels', 'Give it with its country, as +4915112345678.');
            end if;
        when 'push' then
            if one.value <> 'true' then
                perform millrace.refuse('push is not true', 'channels', 'Give "push": true, or leave it out.');
            end if;
        else
            perform millrace.refuse(format('the channel %L is unknown', left(one.key, 60)), 'channels', 'Known are mail, sms, voice and push.');
        end case;
    end loop;
    if (select count(*) from millrace.watch_contact c where c.person = check_in_contact.person and c.contact <> check_in_contact.contact) >= 50 then
        perform millrace.refuse('there are 50 contacts already', 'contact', 'Remove one first.', '53400', 'quota');
    end if;
    insert into millrace.watch_contact as c (person, contact, step, wait, created_at)
    values (check_in_contact.person, check_in_contact.contact, check_in_contact.step, check_in_contact.wait, t)
        on conflict (person, contact) do update set step = excluded.step, wait = excluded.wait;
    delete from millrace.watch_address d
     where d.person = check_in_contact.person and d.contact = check_in_contact.contact and not check_in_contact.channels ? d.channel;
    -- Another address is another one's until it says yes: a new row, so that links sent to the old one open nothing.
    delete from millrace.watch_address d
     where d.person = check_in_contact.person and d.contact = check_in_contact.contact and d.channel <> 'push'
       and d.address <> check_in_contact.channels ->> d.channel;
    insert into millrace.watch_address (ref, person, contact, channel, address)
    select gen_random_uuid(), check_in_contact.person, check_in_contact.contact, e.key, case when e.key <> 'push' then e.value end
      from jsonb_each_text(check_in_contact.channels) e
        on conflict do nothing;
    if reached then
        perform millrace.watch_must_reach(check_in_contact.person);
    end if;
    perform millrace.consent_ask(check_in_contact.person, check_in_contact.contact, t);
    perform millrace.checkin_changed(check_in_contact.person, null, 'contact', jsonb_build_object('contact', check_in_contact.contact, 'step', check_in_contact.step));
    select count(*) into verified from millrace.watch_address d
     where d.person = check_in_contact.person and d.contact = check_in_contact.contact and d.verified_at is not null and d.declined_at is null;
    return verified;
end $$;

-- A running watch keeps somebody to be told.
create or replace function millrace.watch_must_reach(the_person text) returns void
language plpgsql volatile as $$
begin
    if cardinality(millrace.watch_steps(the_person)) = 0 and exists (
        select from millrace.watch w where w.person = the_person and w.state in ('armed', 'warned', 'paused', 'expired')) then
        perform millrace.refuse('nobody would be left to be told', 'contact', 'Name another contact first, or disarm the watch.', '55000', 'wrong_state');
    end if;
end $$;

-- Asks at each address that has not answered; at most five times, and not twice a day.
create or replace function millrace.consent_ask(the_person text, the_contact text, t timestamptz) returns int
language plpgsql volatile as $$
declare
    d millrace.watch_address;
    n int := 0;
begin
    for d in
        select * from millrace.watch_address x
         where x.person = the_person and x.contact = the_contact and x.verified_at is null and x.declined_at is null
           and x.asks < 5 and (x.asked_at is null or x.asked_at < t - interval '1 day')
           for no key update
    loop
        update millrace.watch_address x set asked_at = t, asks = x.asks + 1 where x.ref = d.ref;
        perform millrace.notice_put(d.contact, 'alarm.consent', d.channel, d.address,
            jsonb_build_object('title', format('%s names you as a contact', d.person),
                'body', format('%s asks whether you want to be told when they do not check in. Please say yes or no.', d.person),
                'person', d.person, 'ref', d.ref, 'stage', 'consent'),
            'consent:' || d.ref || ':' || d.asks + 1, t, t + interval '7 days', false);
        n := n + 1;
    end loop;
    return n;
end $$;

create or replace function millrace.check_in_contact_remove(person text, contact text, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.quest_acts_as(check_in_contact_remove.actor, check_in_contact_remove.person, caller => check_in_contact_remove.caller);
    delete from millrace.watch_contact c where c.person = check_in_contact_remove.person and c.contact = check_in_contact_remove.contact;
    if not found then
        return false;
    end if;
    perform millrace.watch_must_reach(check_in_contact_remove.person);
    perform millrace.checkin_changed(check_in_contact_remove.person, null, 'contact_removed', jsonb_build_object('contact', check_in_contact_remove.contact));
    return true;
end $$;

-- By the link that was sent to an address: yes or no, at any time. No is always taken, also from the last contact there is.
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
    perform millrace.consent_set(array[d.ref], check_in_consent.agrees, 'link');
    return check_in_consent.agrees;
end $$;

create or replace function millrace.consent_set(refs uuid[], agrees boolean, how text) returns int
language plpgsql volatile as $$
declare
    t timestamptz := millrace.now();
    n int;
begin
    with changed as (
        update millrace.watch_address d
           set verified_at = case when agrees then coalesce(d.verified_at, t) end, declined_at = case when not agrees then t end
         where d.ref = any (refs) and (agrees is distinct from (d.verified_at is not null and d.declined_at is null))
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
    me text := millrace.quest_actor(check_in_accept.actor, caller => check_in_accept.caller);
    refs uuid[];
begin
    perform millrace.quest_name(check_in_accept.person, 'person');
    refs := array(select d.ref from millrace.watch_address d
                   where d.person = check_in_accept.person and d.contact = me and (d.channel = 'push' or not check_in_accept.agrees) for no key update);
    if cardinality(refs) = 0 or check_in_accept.agrees is null then
        perform millrace.refuse('this person has not named the actor as a contact', 'person', null, 'P0002', 'not_found');
    end if;
    return millrace.consent_set(refs, check_in_accept.agrees, 'account');
end $$;

-- An operator who has been told otherwise, by telephone or on paper.
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

-- Asks once more where nobody has answered; how many addresses.
create or replace function millrace.check_in_consent_ask(person text, contact text, actor text default null, caller millrace.caller_name default current_user) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.quest_acts_as(check_in_consent_ask.actor, check_in_consent_ask.person, caller => check_in_consent_ask.caller);
    return millrace.consent_ask(check_in_consent_ask.person, check_in_consent_ask.contact, millrace.now());
end $$;
