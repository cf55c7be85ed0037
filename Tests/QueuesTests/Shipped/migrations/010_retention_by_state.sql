-- How long ended jobs stay may depend on how they ended; null: as long as those that succeeded.

alter table millrace.queue
    add retention_cancelled smallint,
    add retention_dead smallint,
    add constraint a_state_has_a_retention_class check (retention_cancelled between 0 and 2 and retention_dead between 0 and 2);

drop function if exists millrace.retention_set(text, text);  -- it has got a state
