-- Who calls a door. A value of this type can only name the role that makes it: Postgres checks that where the call is written, as the role
-- that runs the statement there. So a door knows its caller whatever session it runs in: an index expression, a trigger, a cast or a policy of
-- somebody else is its owner, or the role that runs it, and never the session around it.
create domain millrace.caller_name as name
    constraint a_caller_names_itself check (value is not null and value = current_user);
revoke usage on type millrace.caller_name from public;

-- Whose limit key a job has: a client's tenant and role, null for staff. See key_gate.
alter table millrace.job add column limit_scope text;
