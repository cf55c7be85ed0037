-- What language models say of documents: asked when a document was read, and shown to those who see it.

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
select millrace.door_is('documents', 'document_analysis', 'client, worker', 'tenant document',
    'What a model says about a document, or about the documents of a lesson: summary, key points, questions.');

create or replace function millrace.document_answered(q jsonb) returns bigint
language plpgsql volatile as $$
declare
    d millrace.document;
begin
    if q ->> 'room' = 'documents' then
        select * into d from millrace.document x where x.id = (q ->> 'ref')::uuid and x.status <> 'deleted';
        if found then
            perform millrace.event_say('com.classnotes.document.analyzed', '/millrace/ai', d.id::text, d.tenant, jsonb_strip_nulls(jsonb_build_object('document_id', d.id, 'lesson_id', d.lesson_id,
                'status', q ->> 'status', 'reason', q ->> 'reason', 'key_points', jsonb_array_length(nullif(q #> '{answer,key_points}', 'null')),
                'questions', jsonb_array_length(nullif(q #> '{answer,questions}', 'null')))));
        end if;
    end if;
    return null;
end $$;
