-- A vacuum of the tables that jobs pass through rests as long as it works. While an old snapshot is held it comes every minute and finds
-- nothing to take away; without a rest it took a core from those who wait.
alter table millrace.ready set (autovacuum_vacuum_cost_delay = 2, autovacuum_vacuum_cost_limit = 200);
alter table millrace.timer set (autovacuum_vacuum_cost_delay = 2, autovacuum_vacuum_cost_limit = 200);
alter table millrace.lease set (autovacuum_vacuum_cost_delay = 2, autovacuum_vacuum_cost_limit = 200);
alter table millrace.slot set (autovacuum_vacuum_cost_delay = 2, autovacuum_vacuum_cost_limit = 200);
alter table millrace.parked set (autovacuum_vacuum_cost_delay = 2, autovacuum_vacuum_cost_limit = 200);
alter table millrace.unique_lock set (autovacuum_vacuum_cost_delay = 2, autovacuum_vacuum_cost_limit = 200);
alter table millrace.unique_key set (autovacuum_vacuum_cost_delay = 2, autovacuum_vacuum_cost_limit = 200);
