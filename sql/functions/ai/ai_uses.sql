-- What answers are for: the feed of the person, the analysis of a document, the question beside the fact of a card. Answers are data everywhere.

-- Called for each question that has ended, in the transaction that ends it.
create or replace function millrace.ai_put_to_use(q millrace.ai_question) returns void
language plpgsql volatile as $$
declare
    d millrace.document;
begin
    if q.actor is not null and q.room is distinct from 'chat' then
        insert into millrace.feed (at, topic, person, ref, change, data)
        values (millrace.now(), 'ai', q.actor, q.id, q.status, jsonb_strip_nulls(jsonb_build_object('purpose', q.purpose, 'room', q.room, 'ref', q.ref, 'reason', q.reason)));
        perform millrace.feed_wake();
    end if;
    if q.room = 'documents' then
        select * into d from millrace.document x where x.id = q.ref and x.status <> 'deleted';
        if found then
            perform millrace.event_say('com.classnotes.document.analyzed', '/millrace/ai', d.id::text, d.tenant, jsonb_strip_nulls(jsonb_build_object('document_id', d.id, 'lesson_id', d.lesson_id,
                'status', q.status, 'reason', q.reason, 'key_points', jsonb_array_length(q.answer -> 'key_points'), 'questions', jsonb_array_length(q.answer -> 'questions'))));
        end if;
    elsif q.room = 'chat' and q.status = 'answered' then
        -- For the back end, which decides what to do. Nobody's words are in it.
        perform millrace.event_say('com.peachy.message.judged', '/millrace/ai', q.ref::text, q.tenant, jsonb_build_object('message_id', q.ref,
            'sentiment', q.answer ->> 'sentiment', 'concern', q.answer ->> 'concern'));
    elsif q.room = 'cards' and q.status = 'answered' then
        -- One that names the answer is no question.
        update millrace.card c set question = q.answer ->> 'question' from millrace.hobby h
         where c.id = q.ref and h.id = c.hobby and position(h.folded in lower(q.answer ->> 'question')) = 0;
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

-- The stage `analyze` of a document that was read, in the transaction that ends it.
create or replace function millrace.ai_document(d millrace.document) returns void
language plpgsql volatile as $$
declare
    words text := (select left(string_agg(c.text, E'\n\n' order by c.page), 100000) from millrace.document_content c where c.document = d.id);
begin
    if coalesce(btrim(words), '') <> '' then
        perform millrace.ai_ask_for('documents', d.id, 'document_analysis', jsonb_strip_nulls(jsonb_build_object('text', words, 'title', nullif(btrim(d.title), ''))), d.tenant, d.owner, true);
    end if;
end $$;

-- A question made of a new fact. Without AI there is only the fact.
create or replace function millrace.ai_card() returns trigger
language plpgsql as $$
begin
    if millrace.ai_is_configured() and millrace.ai_is_on(null, new.family) then
        perform millrace.ai_ask_for('cards', new.id, 'flash_card', jsonb_build_object('hobby', h.name, 'fact', new.fact), null, h.person, false) from millrace.hobby h where h.id = new.hobby;
    end if;
    return null;
end $$;

do $$
begin
    if not exists (select from pg_trigger g where g.tgrelid = 'millrace.card'::regclass and g.tgname = 'a_card_has_its_question') then
        create trigger a_card_has_its_question after insert on millrace.card for each row when (new.family is not null)
            execute function millrace.ai_card();
    end if;
end $$;

-- The analyses of a document, or of those of a lesson, as far as the actor sees them: the newest of each. `after` is the document of the last row.
create or replace function millrace.document_analysis(
    id uuid default null, lesson_id text default null, page int default 50, actor text default null, after uuid default null, caller millrace.caller_name default current_user
) returns table (document uuid, title text, status text, reason text, summary text, key_points jsonb, questions jsonb, at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.document_actor(document_analysis.actor, caller => document_analysis.caller);
    d millrace.document;
    behind bigint;
    size bigint;
    taken bigint := 0;
begin
    perform millrace.valid_page(document_analysis.page);
    if (document_analysis.id is null) = (document_analysis.lesson_id is null) then
        perform millrace.refuse('id and lesson_id are both missing, or both given', 'id', 'Give one of them.');
    end if;
    if document_analysis.id is not null then
        d := millrace.document_must_see(document_analysis.id, document_analysis.actor, caller => document_analysis.caller);
    end if;
    if document_analysis.after is not null then
        select x.seq into behind from millrace.document x where x.id = document_analysis.after and x.lesson_id = document_analysis.lesson_id;
        if not found then
            perform millrace.refuse('there is no such document in this lesson', 'after', null, 'P0002', 'not_found');
        end if;
    end if;
    for document, title, status, reason, summary, key_points, questions, at in
        select x.id, x.title, a.status, a.reason, a.answer ->> 'summary', a.answer -> 'key_points', a.answer -> 'questions', coalesce(a.ended_at, a.asked_at)
          from millrace.document x
         cross join lateral (select q.* from millrace.ai_question q where q.room = 'documents' and q.ref = x.id order by q.seq desc limit 1) a
         where x.status <> 'deleted' and case when d.id is not null then x.id = d.id
               else x.lesson_id = document_analysis.lesson_id and millrace.document_sees(x, me, caller => document_analysis.caller) end
           and (behind is null or x.seq < behind)
         order by x.seq desc limit document_analysis.page
    loop
        size := octet_length(row(document, title, status, reason, summary, key_points, questions, at)::text);
        exit when not millrace.page_takes('document_analysis', taken, size);
        taken := taken + size;
        return next;
    end loop;
end $$;
