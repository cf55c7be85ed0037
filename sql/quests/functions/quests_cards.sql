-- The question beside the fact of a card, which a language model writes.

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

-- One that names the answer is no question.
create or replace function millrace.card_answered(q jsonb) returns bigint
language plpgsql volatile as $$
begin
    if q ->> 'room' = 'cards' and q ->> 'status' = 'answered' then
        update millrace.card c set question = q #>> '{answer,question}' from millrace.hobby h
         where c.id = (q ->> 'ref')::uuid and h.id = c.hobby and position(h.folded in lower(q #>> '{answer,question}')) = 0;
    end if;
    return null;
end $$;
