-- A replacement finds the key's holder itself, and jobs handed in together are answered for in arrays: these functions are made anew. Nobody
-- outside the schema calls them.
drop function if exists millrace.unique_replace(bytea, bigint, bigint, int, int, int, timestamptz, jsonb, text, int, text[], jsonb, jsonb);
drop function if exists millrace.enqueue_numbered(jsonb, bigint[], text);
