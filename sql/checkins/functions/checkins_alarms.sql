-- An alarm's life: it is raised, goes from step to step until somebody answers, and is resolved. Every change locks its row first; a watch
-- is always locked before its alarm.

-- The open alarm of this person, locked: a new one, or the one there is.
create or replace function millrace.alarm_open(the_person text, the_cause text, the_expiry timestamptz, the_note text, the_actor text, t timestamptz) returns millrace.alarm
language plpgsql volatile as $$
declare
    a millrace.alarm;
begin
    insert into millrace.alarm as x (id, person, cause, state, note, expired_at, late_by, raised_at, next_at)
    values (gen_random_uuid(), the_person, the_cause, 'open', the_note, the_expiry, greatest(t - the_expiry, '0'), t, t)
        on conflict (person) where state <> 'resolved' and cause <> 'drill' do nothing
    returning * into a;
    if found then
        perform millrace.alarm_note(a.id, t, 'raised', who => the_actor);
        perform millrace.checkin_changed(the_person, a.id, 'raised', jsonb_build_object('cause', the_cause, 'late_seconds', extract(epoch from a.late_by)));
        return a;
    end if;
    select * into strict a from millrace.alarm x where x.person = the_person and x.state <> 'resolved' and x.cause <> 'drill' for no key update;
    perform millrace.alarm_note(a.id, t, the_cause, who => the_actor);
    if the_note is not null then
        update millrace.alarm x set note = the_note where x.id = a.id returning * into a;
    end if;
    return a;
end $$;

-- Tells the contacts of the next step. `within`: only if this round has one.
create or replace function millrace.alarm_advance(a millrace.alarm, t timestamptz, within boolean default false) returns millrace.alarm
language plpgsql volatile as $$
declare
    steps int[] := millrace.watch_steps(a.person);
    next_step int := (select min(s) from unnest(steps) s where s > a.step);
    is_first boolean := a.step = 0 and a.state = 'open';
begin
    if within and (next_step is null or a.state <> 'open') then
        return a;
    end if;
    if a.state = 'open' and next_step is null and cardinality(steps) > 0 and a.round < (case a.cause when 'drill' then 1 else millrace.alarm_rounds() end) then
        a.round := a.round + 1;
        next_step := steps[1];
    end if;
    if a.state = 'open' and next_step is not null then
        a.step := next_step;
        a.next_at := t + (select max(c.wait) from millrace.watch_contact c where c.person = a.person and c.step = next_step);
        if not is_first then
            perform millrace.alarm_note(a.id, t, 'escalated', step => a.step, round => a.round);
            perform millrace.checkin_changed(a.person, a.id, 'escalated', jsonb_build_object('step', a.step, 'round', a.round));
        end if;
        if millrace.alarm_tell(a, case when is_first then 'raised' else 'escalated' end, array[next_step], null, t) = 0 then
            a.next_at := t + interval '5 seconds';         -- nobody was told: the next, soon
        end if;
    elsif a.cause = 'drill' then
        return millrace.alarm_end(a, 'drill', null, null, t);
    else
        if a.state <> 'unreachable' then
            a.state := 'unreachable';
            perform millrace.alarm_note(a.id, t, 'unreachable');
            perform millrace.checkin_changed(a.person, a.id, 'unreachable');
        end if;
        a.round := a.round + 1;
        a.next_at := t + interval '1 hour';
        perform millrace.alarm_tell(a, case when is_first then 'raised' else 'escalated' end, null, null, t);
    end if;
    if a.first_accepted_at is null then
        a.first_accepted_at := millrace.alarm_accepted(a.id);
    end if;
    update millrace.alarm x
       set state = a.state, step = a.step, round = a.round, next_at = a.next_at, first_accepted_at = a.first_accepted_at, failures = 0, problem = null
     where x.id = a.id;
    return a;
end $$;

create or replace function millrace.alarm_accepted(the_alarm uuid) returns timestamptz
language sql stable as $$
    select min(n.accepted_at) from millrace.alarm_event e join millrace.notice n on n.id = e.notice where e.alarm = the_alarm and n.status = 'accepted'
$$;

-- Notices on their way that no provider has taken are not sent any more; people who were told of the alarm are told of its end. An alarm
-- that nobody was told of, because the check-in came before the timer, is reported as one that is over.
create or replace function millrace.alarm_end(a millrace.alarm, how text, why text, who text, t timestamptz) returns millrace.alarm
language plpgsql volatile as $$
declare
    told text[];
    nobody boolean;
begin
    perform millrace.notices_stop(array(select e.notice from millrace.alarm_event e where e.alarm = a.id and e.what = 'told'));
    told := array(select distinct e.contact from millrace.alarm_event e where e.alarm = a.id and e.what = 'told' and e.contact is distinct from who);
    nobody := not exists (select from millrace.alarm_event e where e.alarm = a.id and e.what = 'told');
    update millrace.alarm x
       set state = 'resolved', resolution = how, reason = left(why, 500), resolved_at = t, next_at = null, problem = null,
           first_accepted_at = coalesce(x.first_accepted_at, millrace.alarm_accepted(x.id))
     where x.id = a.id returning * into a;
    perform millrace.alarm_note(a.id, t, 'resolved', who => coalesce(who, how));
    perform millrace.checkin_changed(a.person, a.id, 'resolved', jsonb_build_object('by', how));
    if nobody then
        perform millrace.alarm_tell(a, 'resolved', (millrace.watch_steps(a.person))[1:1], null, t, who);
    else
        perform millrace.alarm_tell(a, 'resolved', null, told, t, who);
    end if;
    return a;
end $$;

-- Who is told of an open alarm: who was told, whose turn is still to come, and whether nobody is. The sentence is for people.
create or replace function millrace.alarm_reach(the_alarm uuid) returns jsonb
language sql stable as $$
    select jsonb_build_object('told', told, 'to_tell', to_tell, 'reaches_nobody', told = '{}' and to_tell = '{}',
               'sentence', case when told = '{}' and to_tell = '{}' then 'nobody can be told: no contact has a confirmed address'
                   when told = '{}' then 'nobody has been told yet; next: ' || array_to_string(to_tell, ', ')
                   else 'told: ' || array_to_string(told, ', ') || case when to_tell = '{}' then '' else '; next: ' || array_to_string(to_tell, ', ') end end)
      from (select array(select distinct e.contact from millrace.alarm_event e where e.alarm = a.id and e.what = 'told' order by 1) as told,
                   array(select distinct c.contact from millrace.watch_contact c join millrace.watch_address d on d.person = c.person and d.contact = c.contact
                          where c.person = a.person and d.verified_at is not null and d.declined_at is null
                            and not exists (select from millrace.alarm_event e where e.alarm = a.id and e.what = 'told' and e.contact = c.contact)
                          order by 1) as to_tell
              from millrace.alarm a where a.id = the_alarm) r
$$;

-- Help, now: without waiting for a timer. An open alarm becomes one for help, and its chain of contacts starts again; at most once a
-- minute. Returns {"alarm", "state", "told", "to_tell", "reaches_nobody", "sentence"}, so that an app can say at once when nobody can be
-- told.
create or replace function millrace.check_in_help(person text, note text default null, actor text default null, place jsonb default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz;
    a millrace.alarm;
    told_at timestamptz;
    used jsonb;
begin
    perform millrace.acts_as_person(check_in_help.actor, check_in_help.person, caller => check_in_help.caller);
    if length(check_in_help.note) > millrace.most('note') then
        perform millrace.refuse('the note is too long', 'note', 'Give at most 500 characters.');
    end if;
    perform from millrace.watch w where w.person = check_in_help.person for no key update;
    t := millrace.now();
    used := millrace.place_usable(check_in_help.place, t);
    a := millrace.alarm_open(check_in_help.person, 'help', t, check_in_help.note, check_in_help.person, t);
    perform millrace.place_of_alarm(a.id, used);
    if a.step = 0 and a.raised_at = t then
        a := millrace.alarm_advance(a, t);
    else
        select max(e.at) into told_at from millrace.alarm_event e where e.alarm = a.id and e.what = 'told';
        if a.cause <> 'help' or told_at is null or told_at < t - interval '1 minute' then
            -- Contacts read when help was asked for, not when the alarm before it was due.
            update millrace.alarm x
               set cause = 'help', state = 'open', step = 0, round = x.round + 1, expired_at = t, late_by = '0', next_at = t, acknowledged_by = null,
                   acknowledged_at = null
             where x.id = a.id returning * into a;
            a := millrace.alarm_advance(a, t);
        end if;
    end if;
    return jsonb_build_object('alarm', a.id, 'state', a.state) || millrace.alarm_reach(a.id)
        || case when check_in_help.place is not null and check_in_help.place <> 'null' then jsonb_build_object('place_used', used is not null) else '{}' end;
end $$;
select millrace.door_is('checkins', 'check_in_help', 'client, worker', 'actor person',
    'Raises an alarm now, and says who is told.',
    who_may => array['call for help, and hear who is told: itself, back end, staff']);

-- The same, but returns only the alarm's id. If nobody can be told it warns, with the class 01000.
create or replace function millrace.check_in_alarm(person text, note text default null, actor text default null, place jsonb default null, caller millrace.caller_name default current_user) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    answer jsonb := millrace.check_in_help(person, note, actor, place, caller => caller);
begin
    if (answer ->> 'reaches_nobody')::boolean then
        raise warning using message = format('an alarm is open, and %s', answer ->> 'sentence'),
            hint = 'check_in_help says so in its result. Name a contact with check_in_contact and have the address confirmed.';
    end if;
    return (answer ->> 'alarm')::uuid;
end $$;
select millrace.door_is('checkins', 'check_in_alarm', 'client, worker', 'actor person',
    'Raises an alarm now. Returns its id.', who_may => array['call for help in their name: itself, back end, staff']);

-- The whole chain once, marked as a test at every place. At most ten a day: contacts said yes to being told, not to being rung all day.
create or replace function millrace.check_in_drill(person text, actor text default null, caller millrace.caller_name default current_user) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    a millrace.alarm;
begin
    perform millrace.acts_as_person(check_in_drill.actor, check_in_drill.person, caller => check_in_drill.caller);
    perform millrace.day_must_take('drill', millrace.keyed_hash('person', check_in_drill.person), millrace.counted('drills'), 'the limit of 10 drills a day is reached', 'person');
    if cardinality(millrace.watch_steps(check_in_drill.person)) = 0 then
        perform millrace.refuse('no contact of this person has a verified address', 'person',
            'Name one with check_in_contact and have the address confirmed.', '55000', 'wrong_state');
    end if;
    insert into millrace.alarm as x (id, person, cause, state, expired_at, late_by, raised_at, next_at)
    values (gen_random_uuid(), check_in_drill.person, 'drill', 'open', t, '0', t, t) returning * into a;
    perform millrace.alarm_note(a.id, t, 'raised', who => check_in_drill.person);
    perform millrace.checkin_changed(a.person, a.id, 'raised', '{"cause": "drill"}');
    a := millrace.alarm_advance(a, t);
    return a.id;
end $$;
select millrace.door_is('checkins', 'check_in_drill', 'client, worker', 'actor person',
    'Raises an alarm that is marked as a test.', who_may => array['drill their contacts: itself, back end, staff']);

-- The alarm's new state. A contact answers for itself; with claims it must be their subject.
create or replace function millrace.check_in_respond(alarm uuid, contact text, answer text, caller millrace.caller_name default current_user) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz;
    me text := millrace.subject(check_in_respond.caller);
    a millrace.alarm;
begin
    perform millrace.valid_name(check_in_respond.contact, 'contact');
    if check_in_respond.answer is null or check_in_respond.answer not in ('acknowledged', 'on_my_way', 'cannot', 'safe') then
        perform millrace.refuse(format('the answer %L is unknown', left(check_in_respond.answer, 60)), 'answer', 'Give acknowledged, on_my_way, cannot or safe.');
    end if;
    if me <> check_in_respond.contact then
        perform millrace.refuse('contacts must answer for themselves', 'contact', 'Act as the contact.', '42501', 'permission');
    end if;
    -- The right is part of the statement that locks.
    select * into a from millrace.alarm x
     where x.id = check_in_respond.alarm and (check_in_respond.contact = x.person or exists (
        select from millrace.watch_address d
         where d.person = x.person and d.contact = check_in_respond.contact and d.verified_at is not null and d.declined_at is null))
       for no key update;
    if not found then
        perform millrace.refuse('there is no such alarm for this contact', 'alarm', null, 'P0002', 'not_found');
    end if;
    t := millrace.now();
    if a.state = 'resolved' then
        return a.state;
    end if;
    if check_in_respond.contact = a.person and check_in_respond.answer <> 'safe' then
        perform millrace.refuse('the person can only answer that they are safe', 'answer', 'Give safe.');
    end if;
    if check_in_respond.answer = millrace.alarm_answer(a.id, check_in_respond.contact) then
        return a.state;                                    -- said before
    end if;
    perform millrace.alarm_note(a.id, t, check_in_respond.answer, check_in_respond.contact, check_in_respond.contact);
    perform millrace.checkin_changed(a.person, a.id, 'answered', jsonb_build_object('contact', check_in_respond.contact, 'answer', check_in_respond.answer));
    case
    when check_in_respond.answer = 'safe' or (a.cause = 'drill' and check_in_respond.answer <> 'cannot') then
        a := millrace.alarm_end(a, 'contact', null, check_in_respond.contact, t);
    when check_in_respond.answer = 'cannot' then
        if a.state = 'acknowledged' and a.acknowledged_by = check_in_respond.contact then
            a := millrace.alarm_let_go(a, check_in_respond.contact, t);
        elsif a.state = 'open' and not exists (
            select from millrace.alarm_event e
             where e.alarm = a.id and e.what = 'told' and e.step = a.step and e.round = a.round
               and millrace.alarm_answer(a.id, e.contact) is distinct from 'cannot') then
            a := millrace.alarm_advance(a, t, within => true);
        end if;
    when a.state in ('open', 'unreachable') then
        update millrace.alarm x
           set state = 'acknowledged', next_at = null, acknowledged_by = check_in_respond.contact, acknowledged_at = t,
               first_accepted_at = coalesce(x.first_accepted_at, millrace.alarm_accepted(x.id))
         where x.id = a.id returning * into a;
        perform millrace.alarm_tell(a, 'acknowledged', null,
            array(select distinct e.contact from millrace.alarm_event e where e.alarm = a.id and e.what = 'told' and e.contact <> check_in_respond.contact),
            t, check_in_respond.contact);
    else
        null;                                              -- another looks after it already; the answer stands in the history
    end case;
    return a.state;
end $$;
select millrace.door_is('checkins', 'check_in_respond', 'client, worker', 'actor person', 'Answers an alarm.',
    words => '{"answer": ["acknowledged", "on_my_way", "cannot", "safe"]}',
    who_may => array['answer their alarm: contact, back end, staff', 'say that they are safe: itself, back end, staff']);

-- The contact who had answered no longer looks after it: another contact who has answered does, or the chain continues.
create or replace function millrace.alarm_let_go(a millrace.alarm, who text, t timestamptz) returns millrace.alarm
language plpgsql volatile as $$
declare
    other text;
begin
    select e.contact into other
      from (select distinct on (e.contact) e.contact, e.what from millrace.alarm_event e
             where e.alarm = a.id and e.what in ('acknowledged', 'on_my_way', 'cannot') order by e.contact, e.id desc) e
     where e.what <> 'cannot' and e.contact <> who limit 1;
    update millrace.alarm x
       set acknowledged_by = other, state = case when other is null then 'open' else 'acknowledged' end, next_at = case when other is null then t end
     where x.id = a.id returning * into a;
    if other is null then
        a := millrace.alarm_advance(a, t);
    end if;
    return a;
end $$;

create or replace function millrace.alarm_answer(the_alarm uuid, the_contact text) returns text
language sql stable as $$
    select e.what from millrace.alarm_event e
     where e.alarm = the_alarm and e.contact = the_contact and e.what in ('acknowledged', 'on_my_way', 'cannot', 'safe') order by e.id desc limit 1
$$;

create or replace function millrace.check_in_resolve(alarm uuid, reason text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    a millrace.alarm;
begin
    select * into a from millrace.alarm x where x.id = check_in_resolve.alarm for no key update;
    if not found then
        perform millrace.refuse('there is no such alarm', 'alarm', null, 'P0002', 'not_found');
    end if;
    if a.state = 'resolved' then
        return false;
    end if;
    perform millrace.alarm_end(a, 'operator', check_in_resolve.reason, null, millrace.now());
    perform millrace.audited('check_in.resolve', a.id::text, jsonb_build_object('reason', check_in_resolve.reason), caller => check_in_resolve.caller);
    return true;
end $$;
select millrace.door_is('checkins', 'check_in_resolve', 'worker, operator', 'staff', audited => true,
    who_may => array['end their alarm as an operator: staff']);

-- The page behind a signed link: the alarm as this contact sees it, or the question whether it agrees to be a contact.
create or replace function millrace.alarm_page(the_alarm uuid, the_ref uuid, the_language text default null) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    d millrace.watch_address;
    a millrace.alarm;
    silent millrace.alarm;
    chosen text := case when the_language is not null then millrace.words_language(the_language) end;
begin
    select * into d from millrace.watch_address x where x.ref = the_ref;
    if not found then
        -- The contact is no longer named. The person who was asked can still say “never again”.
        return (select jsonb_build_object('consent', case when millrace.consent_blocked(l.address) then 'never' else 'over' end,
                    'may_ask_again', exists (select from millrace.consent_never n where n.address = l.address and n.how = 'link'))
                  from millrace.consent_link l where l.ref = the_ref and the_alarm is null);
    end if;
    if the_alarm is null then
        return jsonb_build_object('person', d.person, 'name', millrace.display_name(d.person), 'contact', d.contact, 'channel', d.channel,
            'language', millrace.words_language(millrace.consent_locale(d.person, d.contact, d.channel)),
            'consent', case when millrace.consent_blocked(d.hash) then 'never' when d.declined_at is not null then 'declined'
                            when d.verified_at is not null then 'given' else 'asked' end,
            'may_ask_again', exists (select from millrace.consent_never n where n.address = d.hash and n.how = 'link'));
    end if;
    select * into a from millrace.alarm x where x.id = the_alarm and x.person = d.person;
    if not found then
        return null;
    end if;
    -- The page shows the note by itself, in the words of its author.
    silent := a;
    silent.note := null;
    return jsonb_build_object('person', a.person, 'name', millrace.display_name(a.person), 'contact', d.contact, 'state', a.state, 'test', a.cause = 'drill',
            'answer', millrace.alarm_answer(a.id, d.contact), 'note', case when a.state <> 'resolved' then a.note end)
        || millrace.alarm_words(silent, case a.state when 'resolved' then 'resolved' else 'raised' end,
            (select e.contact from millrace.alarm_event e where e.alarm = a.id and e.what = 'safe' order by e.id desc limit 1), d.contact, chosen)
        || jsonb_build_object('language', coalesce(chosen, millrace.alarm_language(a.person, d.contact)), 'place', case when d.verified_at is not null and d.declined_at is null then millrace.place_shown(a.id, a.person, d.contact) end)
        || jsonb_build_object('answers', coalesce((select jsonb_agg(jsonb_build_object('contact', e.contact, 'name', millrace.contact_name(a.person, e.contact),
                 'answer', e.what, 'at', e.at, 'local', millrace.time_in_zone(e.at, millrace.alarm_zone(a.person, d.contact)))
                 order by e.id)
             from millrace.alarm_event e where e.alarm = a.id and e.what in ('acknowledged', 'on_my_way', 'cannot', 'safe')), '[]'));
end $$;
select millrace.door_is('checkins', 'alarm_page', 'worker', 'staff');
