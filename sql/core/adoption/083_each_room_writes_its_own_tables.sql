-- Each room writes its own tables. What quests keep of a family and of a person stands in tables of theirs; what a room tells the feed, or has sent as
-- notices, has a type, so that one call takes many.
create type millrace.feed_change as (
    at timestamptz, topic text, ref text, change text, data jsonb, person text, tenant text, lesson text, family text, about text, actor text,
    due_at timestamptz, thread uuid, n bigint
);
create type millrace.notice_to_send as (person text, kind text, key text, data jsonb, due_at timestamptz, expires_at timestamptz);

lock table millrace.family, millrace.family_member in access exclusive mode;

-- A family's clock, and its streak. Who writes here holds the family's lock.
create table millrace.quest_family (
    family text primary key references millrace.family on delete cascade,
    zone text not null,                                    -- the clock's; it follows the family's
    today date not null,                                   -- the day that is open
    opened_at timestamptz not null,                        -- when it began here
    next_rollover_at timestamptz not null,                 -- when it ends
    due_at timestamptz not null,                           -- the same, or later after a failure
    streak int not null default 0,                         -- of the days before today
    best int not null default 0,
    freezes int not null default 0,
    failures int not null default 0,
    problem text
) with (fillfactor = 80);
insert into millrace.quest_family (family, zone, today, opened_at, next_rollover_at, due_at, streak, best, freezes, failures, problem)
select f.family, f.zone, f.today, f.opened_at, f.next_rollover_at, f.due_at, f.streak, f.best, f.freezes, f.failures, f.problem from millrace.family f;
create index quest_family_due on millrace.quest_family (due_at);
create index quest_family_broken on millrace.quest_family (family) where problem is not null;

-- The streak of a person who has logged moods. Who writes here holds the lock of the member's row.
create table millrace.quest_person (
    person text primary key,
    mood_streak int not null default 0,                    -- up to mood_last
    mood_best int not null default 0,
    mood_freezes int not null default 0,
    mood_last date
);
insert into millrace.quest_person (person, mood_streak, mood_best, mood_freezes, mood_last)
select m.person, m.mood_streak, m.mood_best, m.mood_freezes, m.mood_last
  from millrace.family_member m where m.mood_last is not null or m.mood_best > 0 or m.mood_freezes > 0;

-- Nobody takes it: a link's own row is locked.
delete from millrace.turn where name = 'upload';

drop view if exists millrace.families;
drop function if exists millrace.quest_clock(millrace.family, timestamptz);
drop function if exists millrace.quest_day(millrace.family, date, timestamptz, timestamptz);
drop function if exists millrace.quest_do(millrace.family, text, date, timestamptz, timestamptz);
drop function if exists millrace.quest_do_if(millrace.family, text, date, text, timestamptz, timestamptz);
drop function if exists millrace.mood_day_added(millrace.family, text, date);
drop function if exists millrace.quest_audit_person(millrace.family_member);
drop function if exists millrace.chat_quest_family(uuid, text);
drop function if exists millrace.chat_quest(millrace.family, text, timestamptz, timestamptz);
alter table millrace.family
    drop column today, drop column opened_at, drop column next_rollover_at, drop column due_at, drop column streak, drop column best, drop column freezes,
    drop column failures, drop column problem;
alter table millrace.family_member drop column mood_streak, drop column mood_best, drop column mood_freezes, drop column mood_last;
