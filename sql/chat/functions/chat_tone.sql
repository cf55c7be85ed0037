-- The tone of a thread, as a language model judges it.

-- Asks for the tone of the newest messages that the actor sees, as a score from -1 to 1 and a word. Of the people who are in the thread; AI must be
-- switched on for each of them who wrote any of these. The model reads numbers in place of names. Returns the question's id, for ai_answer; the question
-- goes when a message of the thread is deleted.
create or replace function millrace.chat_tone(
    thread uuid, last int default 50, tenant text default null, options jsonb default '{}', actor text default null, caller millrace.caller_name default current_user
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(chat_tone.actor, caller => chat_tone.caller);
    the_tenant text := millrace.tenant_of(chat_tone.tenant, chat_tone.caller);
    m millrace.chat_member := millrace.chat_seen(chat_tone.thread, me);
    words text;
    authors text[];
begin
    if m.person is null then
        perform millrace.chat_no_thread(chat_tone.thread);
    end if;
    if chat_tone.last is null or chat_tone.last not between 1 and 200 then
        perform millrace.refuse('last is out of range', 'last', 'Give 1 to 200 messages.');
    end if;
    -- A line end within a message is a space, so that no message looks like two.
    with newest as (
        select x.n, x.sender, regexp_replace(btrim(x.text), '[[:space:]]+', ' ', 'g') as line
          from millrace.chat_message x
         where x.thread = m.thread and x.n >= m.since_n and x.deleted_at is null and x.text is not null
           and exists (select from millrace.chat_member y where y.thread = x.thread and y.person = x.sender)
         order by x.n desc limit chat_tone.last
    ), fitting as (
        select w.n, w.sender, w.line, sum(length(w.line) + 4) over (order by w.n desc) as size from newest w
    ), numbered as (
        select f.n, f.sender, f.line, min(f.n) over (partition by f.sender) as first_n from fitting f where f.size <= 20000
    )
    select string_agg(d.number || ': ' || d.line, E'\n' order by d.n), array_agg(distinct d.sender) into words, authors
      from (select n.n, n.sender, n.line, dense_rank() over (order by n.first_n) as number from numbered n) d;
    if words is null then
        perform millrace.refuse('the thread has no text that this person can see', 'thread', null, '55000', 'wrong_state');
    end if;
    if exists (select from unnest(authors) a
                where not millrace.ai_is_on(case when a = me or not millrace.is_personal(the_tenant) then the_tenant end, millrace.ai_family_of(a))) then
        perform millrace.refuse('AI is not switched on for everybody who wrote these messages', 'thread', 'A parent or a back end switches it on: millrace.ai_switch.', '55000', 'conflict');
    end if;
    return millrace.ai_ask_about('threads', m.thread, 'conversation_tone', jsonb_build_object('messages', words), chat_tone.tenant, me, chat_tone.options, chat_tone.caller);
end $$;
select millrace.door_is('chat', 'chat_tone', 'client, worker', 'actor thread', 'Asks a model for the tone of a thread. Returns the question''s id.',
    who_may => array['ask for the tone of the family''s thread: itself, teen, parent, back end, staff']);
