-- Check-ins: who is watched, whom to tell, and the alarms that came of it.

-- The deadline is a row. A check-in moves `expires_at`, which no index holds, so that its update stays on its page; the timer alone
-- moves `wake_at`: it wakes at an old deadline, sees that it has moved, and sets the next.
create table millrace.watch (
    person text primary key check (length(person) between 1 and 128),
    every interval not null,
    grace interval not null,
    warnings interval[] not null,
    zone text not null,
    state text not null check (state in ('armed', 'warned', 'expired', 'paused', 'disarmed')),
    last_checked_in timestamptz,
    expires_at timestamptz,
    warned_at timestamptz,
    wake_at timestamptz,                                   -- null: nothing to wake for
    failures int not null default 0,
    problem text,
    created_at timestamptz not null,
    constraint a_running_watch_wakes check ((state in ('armed', 'warned', 'paused')) = (wake_at is not null)),
    constraint a_running_watch_expires check (state in ('expired', 'disarmed') or expires_at is not null)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
create index watch_wake on millrace.watch (wake_at) where wake_at is not null;

create table millrace.watch_contact (
    person text not null,
    contact text not null check (length(contact) between 1 and 128),
    step int not null check (step between 1 and 20),
    wait interval not null,
    created_at timestamptz not null,
    primary key (person, contact)
);
create index watch_contact_is on millrace.watch_contact (contact);

-- Where a contact is reached. Only what was verified is told anything: by a link that was sent there, or by the contact itself.
create table millrace.watch_address (
    ref uuid primary key,                                  -- what a signed link names
    person text not null,
    contact text not null,
    channel text not null check (channel in ('mail', 'sms', 'voice', 'push')),
    address text,                                          -- null: the contact's own devices
    asked_at timestamptz,
    verified_at timestamptz,
    declined_at timestamptz,
    asks int not null default 0,
    unique (person, contact, channel),
    foreign key (person, contact) references millrace.watch_contact on delete cascade,
    constraint a_push_needs_no_address check ((channel = 'push') = (address is null))
);
create index watch_address_of on millrace.watch_address (address) where address is not null;

create table millrace.alarm (
    id uuid primary key,
    person text not null,
    cause text not null check (cause in ('expired', 'help', 'drill')),
    state text not null check (state in ('open', 'acknowledged', 'resolved', 'unreachable')),
    resolution text check (resolution in ('late_check_in', 'contact', 'operator', 'drill')),
    reason text,
    note text,
    step int not null default 0,                           -- the last whose contacts were told; 0: none yet
    round int not null default 1,
    expired_at timestamptz not null,                       -- for help: when it was asked for
    late_by interval not null,
    raised_at timestamptz not null,
    first_accepted_at timestamptz,                         -- kept when the notices themselves are gone
    acknowledged_by text,
    acknowledged_at timestamptz,
    resolved_at timestamptz,
    next_at timestamptz,                                   -- null: nobody else is to be told
    failures int not null default 0,
    problem text,
    constraint an_alarm_goes_on_until_someone_answers check ((state in ('open', 'unreachable')) = (next_at is not null)),
    constraint a_resolved_alarm_says_how check ((state = 'resolved') = (resolution is not null and resolved_at is not null))
) with (fillfactor = 80);
create index alarm_next on millrace.alarm (next_at) where next_at is not null;
create unique index alarm_one on millrace.alarm (person) where state <> 'resolved' and cause <> 'drill';
create index alarm_of on millrace.alarm (person, raised_at);
create index alarm_lost on millrace.alarm (id) where state = 'unreachable';

-- Appended only.
create table millrace.alarm_event (
    id bigint generated always as identity primary key,
    alarm uuid not null,
    at timestamptz not null,
    what text not null,
    contact text,
    notice uuid,
    by text,
    step int,
    round int,
    channel text
);
create index alarm_event_of on millrace.alarm_event (alarm, id);

-- Alarms whose turn comes before its time, because all that could reach a contact has failed. Inserted and deleted, never updated:
-- whoever records a failure waits for nobody.
create table millrace.alarm_nudge (
    place bigint generated always as identity primary key,
    alarm uuid not null,
    notice uuid not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table millrace.checkin_change (
    place bigint generated always as identity primary key,
    seq bigint unique,                                     -- null: nobody has read it yet
    at timestamptz not null,
    person text not null,
    alarm uuid,
    change text not null,
    data jsonb not null
);
create index checkin_change_fresh on millrace.checkin_change (place) where seq is null;
create index checkin_change_at on millrace.checkin_change (at);
create index checkin_change_of on millrace.checkin_change (person);
create sequence millrace.checkin_change_seq;

-- Who watches over the watches, and when last.
create table millrace.watchman (
    name text primary key,
    beat_at timestamptz not null
) with (fillfactor = 50);

alter table millrace.notice add column if not exists accepted_at timestamptz;

create function millrace.alarm_notice_failed() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into millrace.alarm_nudge (alarm, notice) values (split_part(new.key, ':', 2)::uuid, new.id);
    return null;
end $$;
create trigger alarm_notice_failed after update of status on millrace.notice
    for each row when (new.alarm and new.status in ('failed', 'expired', 'suppressed') and new.status <> old.status
        and new.key ~ '^alarm:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:')
    execute function millrace.alarm_notice_failed();
