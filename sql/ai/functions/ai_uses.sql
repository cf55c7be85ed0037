-- What answers are for: the feed of the person, and the room that asked. Answers are data everywhere.

-- Called for each question that has ended, in the transaction that ends it. The room that asked has a hook of its own.
create or replace function millrace.ai_put_to_use(q millrace.ai_question) returns void
language plpgsql volatile as $$
begin
    if q.actor is not null and q.room is distinct from 'chat' then
        perform millrace.feed_say(array[millrace.feed_change(at => millrace.now(), topic => 'ai', person => q.actor, ref => q.id::text, change => q.status,
            data => jsonb_strip_nulls(jsonb_build_object('purpose', q.purpose, 'room', q.room, 'ref', q.ref, 'reason', q.reason)))]);
    end if;
    if q.room is not null then
        perform millrace.hooks_must('answered', to_jsonb(q));
    end if;
end $$;

-- Asks on behalf of another room, whose work goes on when nothing can be asked. Where it can not, `notes` has that on record as a question that failed.
create or replace function millrace.ai_ask_for(the_room text, the_ref uuid, the_purpose text, the_input jsonb, the_tenant text, the_actor text, notes boolean) returns void
language plpgsql volatile as $$
declare
    why text;
    said text;
    the_reason text := 'internal';
begin
    perform millrace.ai_put(the_purpose, the_input, the_tenant, the_actor, jsonb_build_object('room', the_room, 'ref', the_ref, 'priority', 6), the_actor is not null, current_user);
exception when sqlstate '22023' or sqlstate '42501' or sqlstate '53400' or sqlstate '55000' then
    get stacked diagnostics why = message_text, said = pg_exception_detail;
    if notes then
        the_reason := case when left(said, 1) = '{' then said::jsonb ->> 'error' else 'internal' end;
        insert into millrace.ai_question (id, purpose, version, tenant, actor, caller, locale, input, key, room, ref, status, reason, sentence, asked_at, ended_at)
        values (gen_random_uuid(), the_purpose, 0, the_tenant, the_actor, 'millrace', 'en', '{}', sha256(convert_to(the_ref::text, 'UTF8')), the_room, the_ref, 'refused', the_reason, left(why, 500),
            millrace.now(), millrace.now());
    end if;
end $$;
