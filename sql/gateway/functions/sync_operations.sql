-- What an offline device may hand in later, and how each operation is called.

-- The allow-list. The doors are the clients', and the caller's own right to each is checked as well.
--   is_urgent  goes before everything else of a push
--   has_at     the door takes when it happened, as `at`
--   topic      operations on the same topic and target replace each other: the one that happened last is in force
--   decides    it says how the target is as a whole; else only its fields
--   fields     parameters of which each has its own newest value
--   is_kept    an older operation is carried out all the same, and the newest value set again after it
create or replace function millrace.sync_operations()
returns table (op text, is_urgent boolean, has_at boolean, topic text, target text[], decides boolean, fields text[], is_kept boolean)
language sql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
    values
        ('check_in', true, true, null, null::text[], false, '{}'::text[], false),
        ('check_in_arm', true, false, 'watch', '{}', true, '{every,grace,warnings,zone}', false),
        ('check_in_disarm', true, false, 'watch', '{}', true, '{}', false),
        ('check_in_pause', true, false, 'watch', '{}', true, '{}', false),
        ('check_in_set_interval', true, false, 'watch', '{}', false, '{every}', false),
        ('check_in_contact', false, false, 'contact', '{contact}', true, '{}', false),
        ('check_in_contact_details', false, false, 'contact', '{contact}', false, '{name,label,shares}', false),
        ('check_in_contact_remove', false, false, 'contact', '{contact}', true, '{}', false),
        ('check_in_accept', false, false, null, null, false, '{}', false),
        ('check_in_alarm', true, false, null, null, false, '{}', false),
        ('check_in_help', true, false, null, null, false, '{}', false),
        ('check_in_respond', true, false, null, null, false, '{}', false),
        ('mood_log', false, true, null, null, false, '{}', false),
        ('mood_delete', false, false, null, null, false, '{}', false),
        ('hobby_save', false, false, 'hobby', '{name}', false, '{fact}', true),
        ('hobby_seen', false, false, null, null, false, '{}', false),
        ('card_answer', false, true, null, null, false, '{}', false),
        ('quest_complete', false, true, 'quest', '{family,day}', true, '{}', false),
        ('quest_undo', false, false, 'quest', '{family,day}', true, '{}', false),
        ('notice_preferences', false, false, 'preferences', '{}', true, '{}', false),
        ('person_profile', false, false, 'profile', '{}', false, '{display_name,locale,zone,reminder_hour,avatar,map}', false),
        ('device_add', false, false, 'device', '{token}', true, '{}', false),
        ('device_remove', false, false, 'device', '{token}', true, '{}', false),
        ('own_notice_schedule', false, false, 'own_notice', '{key}', true, '{at}', false),
        ('own_notice_move', false, false, 'own_notice', '{key}', false, '{at}', false),
        ('own_notice_cancel', false, false, 'own_notice', '{key}', true, '{}', false),
        ('document_delete', false, false, null, null, false, '{}', false),
        ('lesson_put', false, false, 'lesson', '{id}', false, '{title,data}', false),
        ('lesson_delete', false, false, null, null, false, '{}', false),
        ('chat_send', false, true, null, null, false, '{}', false),
        ('chat_read', false, false, null, null, false, '{}', false),
        ('chat_delete', false, false, null, null, false, '{}', false)
$$;

create or replace function millrace.sync_id(value jsonb) returns uuid
language sql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
    select case when jsonb_typeof(value) = 'string' and value #>> '{}' ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
                then (value #>> '{}')::uuid end
$$;

-- Calls a door by its name with named arguments. What stands in the statement comes from the catalogue; the values go as one parameter and
-- are converted to the types that the door declares. Times have been put right by then, and no door does it again.
create or replace function millrace.sync_call(the_op text, args jsonb, caller millrace.caller_name) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    lag text := coalesce(current_setting('millrace.client_lag', true), '');
    door record;
    strange text;
    columns text;
    pairs text;
    answer jsonb;
begin
    select p.proargnames[1:p.pronargs] as names, p.proargtypes::oid[] as types, p.pronargs - p.pronargdefaults as needed, p.proretset as is_set into door
      from pg_proc p
     where p.pronamespace = 'millrace'::regnamespace and p.proname = the_op
       and has_function_privilege(to_regrole(quote_ident(sync_call.caller))::oid, p.oid, 'execute');
    if not found then
        perform millrace.refuse(format('this role may not call %s', the_op), 'op', 'Its role needs the rights of the clients'' role.', '42501', 'permission');
    end if;
    select k into strange from jsonb_object_keys(args) k where k <> all (door.names) or k = 'caller' order by k limit 1;
    if strange is not null then
        perform millrace.refuse(format('%L is not a parameter of %s', left(strange, 60), the_op), left(strange, 60),
            format('It takes %s.', array_to_string(array_remove(door.names, 'caller'), ', ')));
    end if;
    select n into strange from unnest(door.names[1:door.needed]) with ordinality x(n, o) where not args ? n order by o limit 1;
    if strange is not null then
        perform millrace.refuse(format('%s is missing', strange), strange, format('%s needs it.', the_op));
    end if;
    select string_agg(format('%I %s', x.n, format_type(x.t, null)), ', ' order by x.n), string_agg(format('%I => x.%I', x.n, x.n), ', ' order by x.n)
      into columns, pairs
      from unnest(door.names, door.types) x(n, t) where args ? x.n;
    perform set_config('millrace.client_lag', '', true);    -- a refusal rolls this back with all else
    if door.is_set then
        execute format('select jsonb_agg(to_jsonb(r)) from jsonb_to_record($1) as x(%s), lateral millrace.%I(%s, caller => $2) r', columns, the_op, pairs)
           into answer using args, sync_call.caller;
    else
        execute format('select to_jsonb(millrace.%I(%s, caller => $2)) from jsonb_to_record($1) as x(%s)', the_op, pairs, columns)
           into answer using args, sync_call.caller;
    end if;
    perform set_config('millrace.client_lag', lag, true);
    return answer;
end $$;

-- Which argument does not have the type that the door declares; for an error that Postgres worded.
create or replace function millrace.sync_misfit(the_op text, args jsonb) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    one record;
begin
    for one in
        select x.n, format_type(x.t, null) as type
          from pg_proc p cross join lateral unnest(p.proargnames[1:p.pronargs], p.proargtypes::oid[]) x(n, t)
         where p.pronamespace = 'millrace'::regnamespace and p.proname = the_op and args ? x.n order by x.n
    loop
        begin
            execute format('select count(x.%I) from jsonb_to_record($1) as x(%I %s)', one.n, one.n, one.type) using args;
        exception when others then
            return one.n;
        end;
    end loop;
    return 'args';
end $$;

-- An error as an answer: class, field, message, hint, and the sentence for the app's user.
create or replace function millrace.sync_refusal(state text, sentence text, detail text, hint text, the_op text, args jsonb) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    said jsonb;
    class text;
begin
    begin
        said := case when left(detail, 1) = '{' then detail::jsonb end;
    exception when data_exception then
        said := null;
    end;
    class := said ->> 'error';
    if class is null then
        class := case when state like '22%' then 'invalid' when state like '23%' then 'conflict' when state = '42501' then 'permission'
                      when state like '40%' or state = '55P03' then 'transient' when state like '53%' or state like '57%' then 'unavailable' else 'internal' end;
        said := jsonb_build_object('field', case class when 'invalid' then millrace.sync_misfit(the_op, args) end);
        hint := case class when 'invalid' then 'Give each argument as the function itself takes it.' else 'Send it again later.' end;
        if class not in ('invalid', 'transient') then
            raise warning 'sync_push: % failed: [%] %', the_op, state, left(sentence, 300);
            sentence := format('%s could not be carried out', the_op);
        end if;
    end if;
    if not exists (select from millrace.error_classes e where e.error_class = class) then
        class := 'conflict';                              -- wrong_state: not as things are now
    end if;
    return jsonb_strip_nulls(jsonb_build_object(
        'outcome', 'refused', 'class', class, 'field', said ->> 'field', 'message', left(sentence, 500), 'hint', nullif(hint, ''),
        'user_message', (select e.user_message from millrace.error_classes e where e.error_class = class),
        'result', nullif(said - array['error', 'field'], '{}')));
end $$;
