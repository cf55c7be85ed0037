-- The console: what pages for operators keep.

-- Sessions of the console that somebody has signed out of, until their cookies would have ended by themselves.
create table millrace.console_signed_out (
    session bytea primary key,                            -- a hash of what the cookie names
    until timestamptz not null,
    constraint a_session_is_a_hash check (octet_length(session) = 32)
);
create index console_signed_out_until on millrace.console_signed_out (until);
