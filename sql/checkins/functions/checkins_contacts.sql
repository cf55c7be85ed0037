-- Who is told when somebody does not check in. A contact is named by its person id if it has an account, else by any name. Each address
-- counts only after its owner has agreed.

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
    perform millrace.acts_as_person(check_in_contact.actor, check_in_contact.person, caller => check_in_contact.caller);
    reached := cardinality(millrace.watch_steps(check_in_contact.person)) > 0;
    perform millrace.valid_name(check_in_contact.contact, 'contact');
    perform millrace.watch_span(check_in_contact.wait, 'wait', 1, 86400);
    if check_in_contact.contact = check_in_contact.person then
        perform millrace.refuse('a person cannot be their own contact', 'contact', 'Name somebody else.');
    end if;
    if check_in_contact.step is null or check_in_contact.step not between 1 and 20 then
        perform millrace.refuse('step is out of range', 'step', 'Give 1 (told first) to 20.');
    end if;
    if check_in_contact.channels is null or jsonb_typeof(check_in_contact.channels) <> 'object' or check_in_contact.channels = '{}' then
        perform millrace.refuse('channels is not an object with at least one channel', 'channels', 'Give {"mail": "a@example.com", "sms": "+4915112345678", "push": true}.');
    end if;
    for one in select e.key, e.value from jsonb_each(check_in_contact.channels) e loop
        case one.key
        when 'mail' then
            perform millrace.mail_check_mailbox(one.value #>> '{}', 'channels');
        when 'sms', 'voice' then
            if jsonb_typeof(one.value) <> 'string' or one.value #>> '{}' !~ E'^\\+[1-9][0-9]{6,14}$' then
                perform millrace.refuse(format('%s is not a telephone number', one.key), 'channels', 'Give it with its country, as +4915112345678.');
            end if;
        when 'push' then
            if one.value <> 'true' then
                perform millrace.refuse('push is not true', 'channels', 'Give "push": true, or leave it out.');
            end if;
        else
            perform millrace.refuse(format('the channel %L is unknown', left(one.key, 60)), 'channels', 'Allowed: mail, sms, voice and push.');
        end case;
    end loop;
    if (select count(*) from millrace.watch_contact c where c.person = check_in_contact.person and c.contact <> check_in_contact.contact) >= millrace.counted('contacts') then
        perform millrace.refuse_quota('there are already 50 contacts', 'contact', 'Remove one first.', millrace.counted('contacts'), millrace.counted('contacts'));
    end if;
    insert into millrace.watch_contact as c (person, contact, step, wait, created_at)
    values (check_in_contact.person, check_in_contact.contact, check_in_contact.step, check_in_contact.wait, t)
        on conflict (person, contact) do update set step = excluded.step, wait = excluded.wait;
    -- Another address is another one's until it says yes: a new row, so that links sent to the old one open nothing.
    perform millrace.alarm_farewell(a, check_in_contact.contact, check_in_contact.channels, null, t)
       from millrace.alarm a where a.person = check_in_contact.person and a.state <> 'resolved';
    perform millrace.consent_withdraw(check_in_contact.person, check_in_contact.contact, check_in_contact.channels);
    delete from millrace.watch_address d
     where d.person = check_in_contact.person and d.contact = check_in_contact.contact
       and (not check_in_contact.channels ? d.channel or (d.channel <> 'push' and d.address <> check_in_contact.channels ->> d.channel));
    insert into millrace.watch_address (ref, person, contact, channel, address, hash, declined_at)
    select gen_random_uuid(), check_in_contact.person, check_in_contact.contact, x.key, x.address, x.hash,
           case when millrace.consent_blocked(x.hash) then t end
      from (select e.key, a.address, millrace.consent_hash(e.key, a.address, check_in_contact.contact) as hash
              from jsonb_each_text(check_in_contact.channels) e cross join lateral (select case when e.key <> 'push' then e.value end as address) a) x
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
select millrace.door_is('checkins', 'check_in_contact', 'client, worker', 'actor person',
    'Names a contact, and how to reach them.', who_may => array['name a contact for them: itself, back end, staff']);

-- What the person says of a contact, for itself: a name and a group; and what that contact, once its account has agreed, sees of the person's watch:
-- nothing, its state, or its times too. null leaves a value as it is, and an empty text clears it. Whom an alarm tells does not depend on it.
create or replace function millrace.check_in_contact_details(
    person text, contact text, name text default null, label text default null, shares text default null, actor text default null,
    caller millrace.caller_name default current_user
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    one record;
begin
    perform millrace.acts_as_person(check_in_contact_details.actor, check_in_contact_details.person, caller => check_in_contact_details.caller);
    for one in select * from (values ('name', check_in_contact_details.name), ('label', check_in_contact_details.label)) v(field, value) loop
        if one.value <> '' and (btrim(one.value) = '' or length(one.value) > millrace.most('display_name') or one.value ~ E'[\\u0001-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]') then
            perform millrace.refuse(format('the %s is blank, too long, or has control characters', one.field), one.field,
                'Give 1 to 100 characters, null to leave it as it is, or an empty text to clear it.');
        end if;
    end loop;
    if check_in_contact_details.shares not in ('', 'nothing', 'state', 'times') then
        perform millrace.refuse(format('%L cannot be shared', left(check_in_contact_details.shares, 60)), 'shares', 'Give nothing, state or times.');
    end if;
    update millrace.watch_contact c
       set name = case when check_in_contact_details.name is null then c.name else nullif(btrim(check_in_contact_details.name), '') end,
           label = case when check_in_contact_details.label is null then c.label else nullif(btrim(check_in_contact_details.label), '') end,
           shares = case when check_in_contact_details.shares is null then c.shares else coalesce(nullif(check_in_contact_details.shares, ''), 'nothing') end
     where c.person = check_in_contact_details.person and c.contact = check_in_contact_details.contact;
    if not found then
        perform millrace.refuse('there is no such contact', 'contact', 'check_in_contact names one.', 'P0002', 'not_found');
    end if;
    perform millrace.checkin_changed(check_in_contact_details.person, null, 'contact', jsonb_build_object('contact', check_in_contact_details.contact));
    return true;
end $$;
select millrace.door_is('checkins', 'check_in_contact_details', 'client, worker', 'actor person',
    'Sets the person''s own name and group for a contact, and what the contact may see.', words => '{"shares": ["", "nothing", "state", "times"]}',
    who_may => array['set what one of their contacts sees: itself, back end, staff']);

-- Refuses a change that would leave a running watch without anybody to tell.
create or replace function millrace.watch_must_reach(the_person text) returns void
language plpgsql volatile as $$
begin
    if cardinality(millrace.watch_steps(the_person)) = 0 and exists (
        select from millrace.watch w where w.person = the_person and w.state in ('armed', 'warned', 'paused', 'expired')) then
        perform millrace.refuse('no contact would be left', 'contact', 'Name another contact first, or disarm the watch.', '55000', 'wrong_state');
    end if;
end $$;

create or replace function millrace.check_in_contact_remove(person text, contact text, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.acts_as_person(check_in_contact_remove.actor, check_in_contact_remove.person, caller => check_in_contact_remove.caller);
    perform millrace.alarm_farewell(a, check_in_contact_remove.contact, '{}', null, millrace.now())
       from millrace.alarm a where a.person = check_in_contact_remove.person and a.state <> 'resolved';
    perform millrace.consent_withdraw(check_in_contact_remove.person, check_in_contact_remove.contact, '{}');
    delete from millrace.watch_contact c where c.person = check_in_contact_remove.person and c.contact = check_in_contact_remove.contact;
    if not found then
        return false;
    end if;
    perform millrace.watch_must_reach(check_in_contact_remove.person);
    perform millrace.checkin_changed(check_in_contact_remove.person, null, 'contact_removed', jsonb_build_object('contact', check_in_contact_remove.contact));
    return true;
end $$;
select millrace.door_is('checkins', 'check_in_contact_remove', 'client, worker', 'actor person', 'Removes a contact.',
    who_may => array['remove one of their contacts: itself, back end, staff']);
