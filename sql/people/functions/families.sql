-- Families: their zone, and the lock under which they change.

create or replace function millrace.valid_zone(zone text) returns void
language plpgsql volatile as $$
begin
    if zone is null or zone !~ '^[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,3}$' then
        perform millrace.refuse(format('the time zone %L is malformed', left(zone, 60)), 'zone', 'Give a name such as Europe/Berlin.');
    end if;
    if exists (select from millrace.family_clock c where c.zone = valid_zone.zone) then
        return;
    end if;
    if not exists (select from pg_catalog.pg_timezone_names n where n.name = valid_zone.zone) then
        perform millrace.refuse(format('the time zone %L is unknown', left(zone, 60)), 'zone', 'Give a name such as Europe/Berlin.');
    end if;
    insert into millrace.family_clock (zone, from_day, print, checked_at)
    values (valid_zone.zone, millrace.now()::date, millrace.zone_print(valid_zone.zone, millrace.now()::date), millrace.now())
        on conflict do nothing;
end $$;

-- A zone's UTC offsets at noon and at midnight of each of 800 days.
create or replace function millrace.zone_print(zone text, from_day date) returns text
language sql stable as $$
    select md5(string_agg(((x.t at time zone zone) - (x.t at time zone 'UTC'))::text, ',' order by x.t))
      from (select from_day::timestamp at time zone 'UTC' + n * interval '12 hours' as t from generate_series(0, 1600) n) x
$$;

-- Notes how the clock of a zone in use stands now, or that the time-zone database has the zone no more.
create or replace function millrace.zone_noted(the_zone text, is_gone boolean) returns void
language sql volatile as $$
    update millrace.family_clock c
       set checked_at = x.t, from_day = case when is_gone then c.from_day else x.t::date end,
           print = case when is_gone then c.print else millrace.zone_print(the_zone, x.t::date) end
      from (select millrace.now() as t) x where c.zone = the_zone
$$;

-- A signed-in person who makes a family becomes its first parent. A family that a back end makes stays empty until a back end adds a
-- member, so the first comer cannot take it over.
create or replace function millrace.family_create(family text, zone text, week_starts int default 1, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    old millrace.family;
    me text := millrace.subject(family_create.caller);
begin
    perform millrace.valid_name(family_create.family, 'family');
    if family_create.week_starts is null or family_create.week_starts not between 0 and 6 then
        perform millrace.refuse('week_starts is out of range', 'week_starts', 'Give 0 for Sunday to 6 for Saturday; 1 is the default.');
    end if;
    perform millrace.valid_zone(family_create.zone);
    if exists (select from millrace.family_member m where m.person = me and m.family <> family_create.family) then
        perform millrace.refuse('this person is in another family', 'family', 'Leave it with family_leave first.', '55000', 'conflict');
    end if;
    insert into millrace.family (family, zone, week_starts, created_at)
    values (family_create.family, family_create.zone, family_create.week_starts, t)
        on conflict do nothing;
    if not found then
        select * into old from millrace.family f where f.family = family_create.family;
        if me is not null and not exists (select from millrace.family_member m where m.person = me and m.family = old.family) then
            perform millrace.refuse(format('family %L exists', left(family_create.family, 60)), 'family', 'Give another name.', '23505', 'conflict');
        end if;
        if (old.zone, old.week_starts) is distinct from (family_create.zone, family_create.week_starts::smallint) then
            perform millrace.refuse(format('family %L exists, with another zone or week', left(family_create.family, 60)), 'family',
                'Change the zone with family_zone.', '23505', 'conflict');
        end if;
        return false;
    end if;
    if me is not null then
        perform millrace.member_put(family_create.family, me, 'parent', t);
    end if;
    return true;
end $$;
select millrace.door_is('people', 'family_create', 'client, worker', 'actor', 'Makes a family.');

create or replace function millrace.family_actor(actor text, family text, caller name) returns text
language plpgsql stable as $$
declare
    me text := millrace.acting_person(actor, caller => family_actor.caller);
begin
    perform millrace.valid_name(family, 'family');
    if not exists (select from millrace.family_member m where m.person = me and m.family = family_actor.family) then
        perform millrace.refuse('the actor is not a member of this family', 'actor', 'Only members can see and do this.', '42501', 'permission');
    end if;
    return me;
end $$;

-- The family, locked, so that its changes happen one after the other. For callers whose right is already checked; see family_lock_as.
create or replace function millrace.family_lock(family text) returns millrace.family
language plpgsql volatile as $$
declare
    f millrace.family;
begin
    select x.* into f from millrace.family x where x.family = family_lock.family for no key update;
    if f.family is null then
        perform millrace.refuse(format('there is no family %L', left(family, 60)), 'family', null, 'P0002', 'not_found');
    end if;
    return f;
end $$;

create or replace function millrace.family_lock_of(person text) returns millrace.family
language plpgsql volatile as $$
declare
    theirs text;
    f millrace.family;
begin
    loop
        select m.family into theirs from millrace.family_member m where m.person = family_lock_of.person;
        if theirs is null then
            perform millrace.refuse('this person is not in a family', 'person', 'Join one with family_join.', 'P0002', 'not_found');
        end if;
        f := millrace.family_lock(theirs);
        if exists (select from millrace.family_member m where m.person = family_lock_of.person and m.family = theirs) then
            return f;
        end if;
    end loop;
end $$;

-- The person's family, locked. Of a person in none it is one without a name, in the person's zone; what is locked is the person's own row.
create or replace function millrace.family_lock_or_own(person text) returns millrace.family
language plpgsql volatile as $$
declare
    theirs text;
    f millrace.family;
begin
    if not exists (select from millrace.family_member m where m.person = family_lock_or_own.person and m.family is not null) then
        begin
            insert into millrace.family_member (person) values (family_lock_or_own.person) on conflict do nothing;
            select m.family into theirs from millrace.family_member m where m.person = family_lock_or_own.person for no key update;
            if theirs is not null then                    -- joined meanwhile: lets go of the row, for families are locked before their members
                raise exception using errcode = 'M0001';
            end if;
            f.zone := coalesce(millrace.zone_of(family_lock_or_own.person), 'UTC');
            return f;
        exception when sqlstate 'M0001' then
            null;
        end;
    end if;
    return millrace.family_lock_of(family_lock_or_own.person);
end $$;

