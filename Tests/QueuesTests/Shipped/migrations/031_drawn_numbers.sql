-- A caller may bring the number of its job: one parameter more, so the function is made anew. Nobody outside the schema calls it.
drop function if exists millrace.enqueue_one(text, jsonb, text, int, timestamptz, text, text, text, text, int, text[], jsonb, jsonb);
