-- A claim says at which lane it waits for its turn, and for how long: parameters more, so the functions are made anew. Workers that do not say
-- so wait as before, at the first lane.
drop function if exists millrace.claim(bigint, bigint, int[], int[], int[], bigint[], bigint[], int[], int, int[], int[], boolean, boolean, boolean);
drop function if exists millrace.claim_limited(bigint, bigint, int[], int[], int[], bigint[], bigint[], int[], int, int[], int[], boolean, boolean, boolean, boolean);
drop function if exists millrace.claim_turn(int, int);
