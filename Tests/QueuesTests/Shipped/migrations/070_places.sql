-- Where a person was when it asked for help, or when it last checked in: for its contacts, on the page of that alarm. Apart from the rows that lists,
-- feeds and events are made of.
create table millrace.place (
    alarm uuid unique references millrace.alarm on delete cascade,
    person text,                                           -- of a check-in, until an alarm takes it
    latitude float8 not null,
    longitude float8 not null,
    accuracy float8,                                       -- metres
    at timestamptz not null,
    gone_at timestamptz,                                   -- null: while its alarm is open
    constraint a_place_is_of_an_alarm_or_a_person check ((alarm is null) <> (person is null)),
    constraint a_place_is_on_earth check (latitude between -90 and 90 and longitude between -180 and 180 and accuracy >= 0)
);
create unique index place_of on millrace.place (person) where person is not null;
create index place_gone on millrace.place (gone_at) where gone_at is not null;
