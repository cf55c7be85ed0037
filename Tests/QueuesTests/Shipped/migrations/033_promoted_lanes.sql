-- What has moved what came due says where it waits now, so the function is made anew. Workers that do not ask are told the rest as before.
drop function if exists millrace.promote(timestamptz, int);
