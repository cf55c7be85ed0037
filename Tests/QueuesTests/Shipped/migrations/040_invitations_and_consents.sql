-- Who joins a family has said yes: until then there is an invitation.
create table millrace.family_invitation (
    family text not null references millrace.family,
    person text not null check (length(person) between 1 and 128),
    role text not null check (role in ('teen', 'parent')),
    invited_by text,                                       -- null: a back end, for the app
    invited_at timestamptz not null,
    expires_at timestamptz not null,
    declined_at timestamptz,
    primary key (family, person)
);
create index family_invitation_of on millrace.family_invitation (person, family);
create index family_invitation_by on millrace.family_invitation (invited_by) where invited_by is not null;
create index family_invitation_expires on millrace.family_invitation (expires_at);

-- How often an asker has asked an address for its consent. Both are keyed hashes: no name and no address can be read here, so the counts stay
-- when a contact is removed, and when the asker is erased and signs up again.
create table millrace.consent_ask (
    asker bytea not null,
    address bytea not null,
    asks int not null,
    asked_at timestamptz not null,
    primary key (asker, address),
    constraint an_address_is_asked_at_most_five_times check (asks between 1 and 5)
);

-- Addresses that nobody may ask again.
create table millrace.consent_never (
    address bytea primary key,
    at timestamptz not null,
    how text not null check (how in ('link', 'operator'))
);

-- What a link was sent for: it still says "never again" when the contact has long been removed.
create table millrace.consent_link (
    ref uuid primary key,
    address bytea not null,
    at timestamptz not null
);
create index consent_link_at on millrace.consent_link (at);

-- What somebody may do so many times a day. `who` is a keyed hash.
create table millrace.day_count (
    what text not null,
    who bytea not null,
    day date not null,
    n int not null,
    primary key (what, who, day)
);
create index day_count_day on millrace.day_count (day);

alter table millrace.watch_address
    add column hash bytea,                                 -- of the address, as consent is counted by
    add column held_until timestamptz;                     -- it was not asked for consent, and will not be before that
create index watch_address_hash on millrace.watch_address (hash);
create index watch_address_unhashed on millrace.watch_address (ref) where hash is null;
