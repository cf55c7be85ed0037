-- Few routes are read through, which is cheaper than to descend an index that nothing else keeps warm; many are found by their key. The
-- planner knows which, once it has been told that the table is small: Postgres takes one that was never analysed for ten pages. A page
-- holds a dozen routes, so that the planner changes over to the index at some seventy.
alter table millrace.route set (fillfactor = 10, autovacuum_analyze_threshold = 0);
with gone as (delete from millrace.route returning kind_name, queue_name, kind, queue)
insert into millrace.route (kind_name, queue_name, kind, queue) select kind_name, queue_name, kind, queue from gone;
analyze millrace.route;
-- No caller brings the number of its job any more; the functions are made anew, with one parameter less.
drop function if exists millrace.enqueue_one(text, jsonb, text, int, timestamptz, text, text, text, text, int, text[], jsonb, jsonb, bigint);
drop function if exists millrace.enqueue_fully(text, jsonb, text, int, timestamptz, text, text, text, text, int, text[], jsonb, jsonb, int, bigint);
