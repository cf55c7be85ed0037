-- A claim says how many bytes of a job its answer may hold: a parameter more, so the functions are made anew. Workers that do not say so
-- are answered as before.
drop function if exists millrace.claim(bigint, bigint, int[], int[], int[], bigint[], bigint[], int[], int, int[], int[], boolean, boolean, boolean, int, int);
drop function if exists millrace.claim_limited(bigint, bigint, int[], int[], int[], bigint[], bigint[], int[], int, int[], int[], boolean, boolean, boolean, boolean, int, int);
drop function if exists millrace.claim_many(bigint, bigint, int[], int[], int[], bigint[], bigint[], int[], int, int[], int[], boolean, boolean, int[]);
drop function if exists millrace.claim_one(bigint, bigint, int[], int, int, bigint, boolean);
drop function if exists millrace.leases_read(bigint, bigint[]);
