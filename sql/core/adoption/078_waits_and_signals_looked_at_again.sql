-- A wait that came back to its place is looked at again: what was signalled meanwhile is told. A signal whose waiting job somebody has locked
-- is looked at later, after the others.
alter table millrace.wait add column look_at timestamptz;                -- null: nothing was kept for it while it was elsewhere
create index wait_look on millrace.wait (look_at) where look_at is not null;
alter table millrace.signal add column look_at timestamptz;              -- null: at once
drop index millrace.signal_fresh;
create index signal_fresh on millrace.signal ((coalesce(look_at, '-infinity'::timestamptz)), seq) where state = 0;

alter table millrace.ending add column look_at timestamptz;              -- null: at once; else somebody's transaction has kept it from being told

-- Looked at once more: jobs that wait for one that ended at the moment of their enqueue, and were forgotten by earlier versions.
update millrace.blocked b set fresh = true
 where b.job = any (array(
    select c.job from millrace.blocked c
     where not c.fresh and exists (select from millrace.edge e where e.succ = c.job and e.outcome is null and e.number is null) for update skip locked));
