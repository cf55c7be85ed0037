-- Moods and hobbies of a person in no family, the hour at which a person is reminded, and which family a fact was noted for.
alter table millrace.mood alter column family drop not null;
alter table millrace.hobby alter column family drop not null;
create index hobby_by on millrace.hobby (person, at, id);
alter table millrace.profile add column reminder_hour int check (reminder_hour between 0 and 23);

-- null: noted in no family, and shown to nobody but the person.
alter table millrace.card add column family text;
update millrace.card c
   set family = case when m.family <> h.family and c.at >= m.joined_at then m.family else h.family end
  from millrace.hobby h left join millrace.family_member m on m.person = h.person
 where h.id = c.hobby;
create index card_in on millrace.card (family, id) where family is not null;

-- What a family sees of a hobby: the newest fact that was noted while its person was in that family.
create table millrace.hobby_share (
    hobby uuid not null references millrace.hobby on delete cascade,
    family text not null,
    fact text not null,
    at timestamptz not null,
    primary key (hobby, family)
);
create index hobby_share_in on millrace.hobby_share (family, at, hobby);
insert into millrace.hobby_share (hobby, family, fact, at)
select distinct on (c.hobby, c.family) c.hobby, c.family, c.fact, case when c.family = h.family then h.at else c.at end
  from millrace.card c join millrace.hobby h on h.id = c.hobby
 where c.family is not null
 order by c.hobby, c.family, (lower(c.fact) = lower(h.fact)) desc, c.at desc;
