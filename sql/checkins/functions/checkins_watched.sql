-- The contact's side: whom it watches over, who asks it to, and the alarms that it was told of. Only an account that has agreed itself sees more than
-- that there is an alarm: anybody may name a contact by another's id.

-- Whom the actor watches over, and who has asked it to, in the order of their ids behind the one in `after`. A question that the limits hold back is not
-- shown. consent: asked, given or declined; null for all. What it sees of a watch is what the person shares: see check_in_contact_details.
create or replace function millrace.check_in_watched(
    consent text default null, after text default null, page int default 50, actor text default null, caller millrace.caller_name default current_user
) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(check_in_watched.actor, caller => check_in_watched.caller);
    found_people jsonb;
begin
    perform millrace.valid_page(check_in_watched.page);
    if check_in_watched.consent not in ('asked', 'given', 'declined') then
        perform millrace.refuse(format('the consent %L is unknown', left(check_in_watched.consent, 60)), 'consent', 'Give asked, given or declined, or null for all.');
    end if;
    select coalesce(jsonb_agg(
               jsonb_build_object('person', x.person, 'name', millrace.display_name(x.person), 'consent', x.consent, 'asked_at', x.asked_at, 'agreed_at', x.verified_at)
               || case when x.consent = 'given' then
                   jsonb_build_object('avatar', (select p.avatar from millrace.profile p where p.person = x.person), 'shares', x.shares, 'alarms', millrace.alarms_told(x.person, me))
                   || millrace.watch_shared(x.person, x.shares) else '{}' end order by x.person), '[]') into found_people
      from (select c.person, c.shares, d.asked_at, d.verified_at, w.consent
              from millrace.watch_contact c
              join millrace.watch_address d on d.person = c.person and d.contact = c.contact and d.channel = 'push'
             cross join lateral (select case when d.declined_at is not null then 'declined' when d.verified_at is not null then 'given' else 'asked' end as consent) w
             where c.contact = me and (d.asked_at is not null or d.verified_at is not null)
               and (check_in_watched.consent is null or w.consent = check_in_watched.consent) and c.person > coalesce(check_in_watched.after, '')
             order by c.person limit check_in_watched.page) x;
    return jsonb_build_object('people', found_people,
        'next', case when jsonb_array_length(found_people) = check_in_watched.page then found_people -> -1 -> 'person' end);
end $$;
select millrace.door_is('checkins', 'check_in_watched', 'client, worker', 'actor person',
    'Whom the person watches over, and who asks it to.', words => '{"consent": ["asked", "given", "declined"]}',
    who_may => array['see whom they watch over: itself, back end, staff']);

-- What a person shares of its watch. That it was warned is its own.
create or replace function millrace.watch_shared(the_person text, shares text) returns jsonb
language sql stable as $$
    select case when watch_shared.shares <> 'nothing' then jsonb_build_object('state', case w.state when 'warned' then 'armed' else coalesce(w.state, 'disarmed') end) else '{}' end
        || case when watch_shared.shares = 'times' then jsonb_build_object('last_checked_in', w.last_checked_in, 'check_in_interval', w.every,
                'check_in_expiration', w.expires_at, 'paused_until', case w.state when 'paused' then w.wake_at end) else '{}' end
      from (select the_person) p left join millrace.watch w on w.person = p.the_person
$$;

-- The open alarms of a person that this contact was told of.
create or replace function millrace.alarms_told(the_person text, the_contact text) returns jsonb
language sql stable as $$
    select coalesce(jsonb_agg(a.id order by a.raised_at desc), '[]') from millrace.alarm a
     where a.person = the_person and a.state <> 'resolved' and millrace.alarm_told(a, the_contact)
$$;

-- It was told of this alarm, and may still be told: as with an answer to it.
create or replace function millrace.alarm_told(a millrace.alarm, the_contact text) returns boolean
language sql stable as $$
    select exists (select from millrace.watch_address d
                    where d.person = a.person and d.contact = the_contact and d.verified_at is not null and d.declined_at is null)
       and exists (select from millrace.alarm_event e where e.contact = the_contact and e.alarm = a.id and e.what = 'told')
$$;

-- An alarm as this reader sees it: the person itself, or a contact that was told.
create or replace function millrace.alarm_seen(a millrace.alarm, me text) returns jsonb
language sql stable as $$
    select jsonb_build_object('alarm', a.id, 'person', a.person, 'is_own', r.is_own, 'state', a.state, 'cause', a.cause, 'test', a.cause = 'drill', 'raised_at', a.raised_at,
               'expired_at', a.expired_at, 'late_seconds', round(extract(epoch from a.late_by)), 'acknowledged_by', a.acknowledged_by, 'acknowledged_at', a.acknowledged_at,
               'resolved_at', a.resolved_at, 'resolution', a.resolution, 'answer', millrace.alarm_answer(a.id, me))
        || case when r.is_own or millrace.contact_account(a.person, me) is not null then
               jsonb_build_object('name', millrace.display_name(a.person), 'place', millrace.place_shown(a.id, a.person, me),
                   'answers', coalesce((select jsonb_agg(jsonb_build_object('contact', e.contact, 'name', millrace.contact_name(a.person, e.contact), 'answer', e.what, 'at', e.at) order by e.id)
                       from (select * from millrace.alarm_event y where y.alarm = a.id and y.what in ('acknowledged', 'on_my_way', 'cannot', 'safe') order by y.id desc limit 50) e), '[]'))
               || millrace.alarm_words(a, case a.state when 'resolved' then 'resolved' else 'raised' end,
                   (select e.contact from millrace.alarm_event e where e.alarm = a.id and e.what = 'safe' order by e.id desc limit 1), case when not r.is_own then me end)
           else '{}' end
      from (select a.person = me as is_own) r
$$;

-- The actor's own alarms and those that it was told of, the newest first, behind the one in `after`. is_open: only those that are open, or only the others.
create or replace function millrace.check_in_alarms(
    is_open boolean default null, after uuid default null, page int default 20, actor text default null, caller millrace.caller_name default current_user
) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(check_in_alarms.actor, caller => check_in_alarms.caller);
    last millrace.alarm;
    shown jsonb;
begin
    if check_in_alarms.page is null or check_in_alarms.page not between 1 and 50 then
        perform millrace.refuse('a page has 1 to 50 alarms', 'page');
    end if;
    if check_in_alarms.after is not null then
        select * into last from millrace.alarm x where x.id = check_in_alarms.after and (x.person = me or millrace.alarm_told(x, me));
        if not found then
            perform millrace.refuse('there is no such alarm', 'after', 'Give the alarm of the last row.', 'P0002', 'not_found');
        end if;
    end if;
    select coalesce(jsonb_agg(millrace.alarm_seen(y.a, me) order by (y.a).raised_at desc, (y.a).id desc), '[]') into shown
      from (select a from millrace.alarm a
             where a.id = any (array(select x.id from millrace.alarm x where x.person = me
                                     union select e.alarm from millrace.alarm_event e where e.contact = me and e.what = 'told'))
               and (check_in_alarms.is_open is null or check_in_alarms.is_open = (a.state <> 'resolved'))
               and (last.id is null or (a.raised_at, a.id) < (last.raised_at, last.id))
               and (a.person = me or millrace.alarm_told(a, me))
             order by a.raised_at desc, a.id desc limit check_in_alarms.page) y;
    return jsonb_build_object('alarms', shown, 'next', case when jsonb_array_length(shown) = check_in_alarms.page then shown -> -1 -> 'alarm' end);
end $$;
select millrace.door_is('checkins', 'check_in_alarms', 'client, worker', 'actor person',
    'The person''s own alarms, and those that it was told of.',
    who_may => array['see the alarms that they raised or were told of: itself, back end, staff']);

-- One of them. The person itself also sees who was told, when and how.
create or replace function millrace.check_in_alarm_show(alarm uuid, actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(check_in_alarm_show.actor, caller => check_in_alarm_show.caller);
    a millrace.alarm;
begin
    select * into a from millrace.alarm x where x.id = check_in_alarm_show.alarm and (x.person = me or millrace.alarm_told(x, me));
    if not found then
        perform millrace.refuse('there is no such alarm', 'alarm', null, 'P0002', 'not_found');
    end if;
    return millrace.alarm_seen(a, me) || case when a.person = me then jsonb_build_object('events', coalesce((
        select jsonb_agg(jsonb_build_object('at', e.at, 'what', e.what, 'contact', e.contact, 'by', e.by, 'step', e.step, 'round', e.round, 'channel', e.channel,
                   'status', n.status, 'accepted_at', n.accepted_at) order by e.id)
          from (select * from millrace.alarm_event y where y.alarm = a.id order by y.id desc limit 500) e left join millrace.notice n on n.id = e.notice), '[]'))
        else '{}' end;
end $$;
select millrace.door_is('checkins', 'check_in_alarm_show', 'client, worker', 'actor',
    'One alarm, with its words, answers and place.',
    who_may => array['see their alarm: itself, contact, back end, staff']);
