-- Seconds that a worker's clock is ahead of the database's; null: a worker of an earlier version, which does not say.
alter table millrace.beat add column ahead real;
