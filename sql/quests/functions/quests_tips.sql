-- Tips that a language model gives for a mood.

-- Asks for a tip: for the mood that is named, one of the actor's own or one that somebody of its family shares, as `moods` shows it; without a name for
-- the newest of its own of the last day. The model reads the mood and what the actor adds, and no name. Returns the question's id, for ai_answer.
create or replace function millrace.mood_tip(
    mood uuid default null, situation text default null, topic text default null, tenant text default null, options jsonb default '{}', actor text default null,
    caller millrace.caller_name default current_user
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(mood_tip.actor, caller => mood_tip.caller);
    t timestamptz := millrace.now();
    m millrace.mood;
begin
    select x.* into m from millrace.mood x
     where x.deleted_at is null
       and case when mood_tip.mood is null then x.person = me and x.at > t - interval '1 day'
                else x.id = mood_tip.mood and (x.person = me or (x.shared_at <= t and exists (
                    select from millrace.family_member a join millrace.family_member b on b.family = a.family
                     where a.person = me and b.person = x.person and a.family = x.family))) end
     order by x.at desc, x.id desc limit 1;
    if m.id is null then
        perform millrace.refuse(case when mood_tip.mood is null then 'this person has logged no mood for a day' else 'there is no such mood' end, 'mood',
            'Log one first, or name one that the actor sees.', 'P0002', 'not_found');
    end if;
    return millrace.ai_ask_about('moods', m.id, 'coaching_tip',
        jsonb_strip_nulls(jsonb_build_object('mood', concat_ws(' ', m.color, m.emoji), 'whose', case when m.person <> me then 'somebody of the family' end,
            'topic', mood_tip.topic, 'situation', coalesce(nullif(btrim(mood_tip.situation), ''), 'Nothing more is known.'))),
        mood_tip.tenant, me, mood_tip.options, mood_tip.caller);
end $$;
select millrace.door_is('quests', 'mood_tip', 'client, worker', 'actor person', 'Asks a model for a tip for a mood. Returns the question''s id.',
    who_may => array['ask for a tip for one of their moods: itself, teen, parent, back end, staff']);
