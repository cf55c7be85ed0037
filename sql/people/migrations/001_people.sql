-- People: profiles, families, who belongs to which.

create table millrace.family (
    family text primary key check (length(family) between 1 and 128),
    zone text not null,
    week_starts smallint not null default 1 check (week_starts between 0 and 6),
    created_at timestamptz not null
) with (fillfactor = 80);

-- Zones in use, and how their clocks stood when we last looked: another answer means another time-zone database.
create table millrace.family_clock (
    zone text primary key,
    from_day date not null,
    print text not null,
    checked_at timestamptz not null
);

-- A person is in one family at a time; who has left keeps points and streaks.
create table millrace.family_member (
    person text primary key check (length(person) between 1 and 128),
    family text references millrace.family,
    role text check (role in ('teen', 'parent')),
    joined_at timestamptz,
    constraint a_member_has_a_role check ((family is null) = (role is null))
);
create index family_member_of on millrace.family_member (family);

create table millrace.notice_preference (
    person text primary key,
    zone text not null,
    quiet_from time not null,
    quiet_to time not null,
    channels jsonb not null,
    locale text,
    changed_at timestamptz not null
);

-- Who joins a family has said yes: until then there is an invitation.
create table millrace.family_invitation (
    family text not null references millrace.family,
    person text not null check (length(person) between 1 and 128),
    role text not null check (role in ('teen', 'parent')),
    invited_by text,                                      -- null: a back end, for the app
    invited_at timestamptz not null,
    expires_at timestamptz not null,
    declined_at timestamptz,
    primary key (family, person)
);
create index family_invitation_of on millrace.family_invitation (person, family);
create index family_invitation_by on millrace.family_invitation (invited_by) where invited_by is not null;
create index family_invitation_expires on millrace.family_invitation (expires_at);

-- How a person is called, and in which language and zone it reads. What nobody has said is null.
create table millrace.profile (
    person text primary key,
    display_name text,
    locale text,
    zone text,
    changed_at timestamptz not null,
    reminder_hour int check (reminder_hour between 0 and 23),
    -- The rest of a profile: a picture, and the map that links to places open.
    avatar text,
    map text check (map in ('geo', 'osm', 'apple', 'google'))
);

-- How often somebody has done something on a day, where a day has a limit. `who` is a keyed hash.
create table millrace.day_count (
    what text not null,
    who bytea not null,
    day date not null,
    n int not null,
    primary key (what, who, day)
);
create index day_count_day on millrace.day_count (day);
