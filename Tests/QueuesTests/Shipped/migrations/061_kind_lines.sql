-- Lines of a kind: the same kind to everybody who looks, but its jobs are taken only by workers that have registered the line. A claim names
-- the kinds it takes by number, so workers of earlier versions obey too.
alter table millrace.kind add line text not null default '';
alter table millrace.kind add constraint a_line_is_short check (length(line) <= 200);
alter table millrace.kind drop constraint kind_name_key;
alter table millrace.kind add constraint a_line_is_there_once unique (name, line);

-- Undos go to a line of their own: a worker that knows of none would do the job's work again.
insert into millrace.kind (name, line)
select distinct k.name, 'undo' from millrace.undo u join millrace.job j on j.id = u.undo_job join millrace.kind k on k.id = j.kind;
update millrace.job j set kind = l.id
  from millrace.undo u, millrace.kind k, millrace.kind l
 where j.id = u.undo_job and k.id = j.kind and l.name = k.name and l.line = 'undo';
update millrace.timer d set kind = j.kind from millrace.undo u, millrace.job j where d.job = u.undo_job and j.id = d.job;
update millrace.ready r set kind = j.kind from millrace.undo u, millrace.job j where r.job = u.undo_job and j.id = r.job;
