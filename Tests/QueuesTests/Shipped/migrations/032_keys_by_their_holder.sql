-- An end finds its job's key by the job. By the hash of the key it walked over whoever had held it before: under an old snapshot those stay, a
-- row for each, and a key that comes round every few seconds makes each of its ends dearer than the last.
create index unique_lock_job on millrace.unique_lock (job);
