-- Everything that determines a family's streaks and points, and the stored results; the caller compares them.

-- The keys of all awards but those of a streak of moods, from the events.
create or replace function millrace.points_earned(the_person text) returns setof text
language sql stable as $$
    select 'quest:' || c.family || ':' || c.day from millrace.quest_completion c where c.person = the_person and c.undone_at is null
    union all select 'hobby:' || h.folded from millrace.hobby h where h.person = the_person
    union all select 'seen:' || v.hobby from millrace.hobby_view v where v.person = the_person
    union all select 'card:' || r.card from millrace.card_reply r where r.person = the_person
$$;

create or replace function millrace.quest_audit_person(the_person text) returns jsonb
language sql stable as $$
    select jsonb_build_object('person', m.person, 'streak', array[coalesce(p.mood_streak, 0), coalesce(p.mood_best, 0), coalesce(p.mood_freezes, 0)], 'last', p.mood_last,
        'moods', coalesce((select jsonb_agg(distinct o.day) from millrace.mood o where o.person = m.person and o.deleted_at is null), '[]'),
        'earned', coalesce((select jsonb_agg(e) from millrace.points_earned(m.person) e), '[]'),
        'held', coalesce((select jsonb_agg(x.base) from (
                select regexp_replace(l.key, '(#[0-9]+)?(/undo)?$', '') as base from millrace.points_ledger l
                 where l.person = m.person and l.key !~ '^(award|erased):' group by 1
                having count(*) filter (where l.key !~ '/undo$') > count(*) filter (where l.key ~ '/undo$')) x), '[]'),
        'doubled', coalesce((select jsonb_agg(x.base) from (
                select regexp_replace(l.key, '(#[0-9]+)?(/undo)?$', '') as base from millrace.points_ledger l
                 where l.person = m.person and l.key !~ '^(award|erased):' group by 1
                having count(*) filter (where l.key !~ '/undo$') - count(*) filter (where l.key ~ '/undo$') not in (0, 1)) x), '[]'))
      from (select the_person as person) m left join millrace.quest_person p on p.person = m.person
$$;

create or replace function millrace.quest_audit(after text default '', page int default 100, exactly boolean default false) returns table (family text, facts jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.valid_page(page);
    return query
        select f.family, jsonb_build_object('family', f.family, 'zone', f.zone, 'today', f.today, 'streak', array[f.streak, f.best, f.freezes],
            'days', coalesce((select jsonb_agg(jsonb_build_array(q.day, q.state,
                        (select count(*) from millrace.quest_completion c where c.family = q.family and c.day = q.day and c.undone_at is null)) order by q.day)
                      from millrace.quest q where q.family = f.family), '[]'),
            'people', coalesce((select jsonb_agg(millrace.quest_audit_person(m.person) order by m.person) from millrace.family_member m where m.family = f.family), '[]'))
          from millrace.quest_family f
         where f.family >= quest_audit.after and (f.family = quest_audit.after) = quest_audit.exactly order by f.family limit quest_audit.page;
end $$;
select millrace.door_is('quests', 'quest_audit', 'admin', 'staff');

-- Makes a family's stored results what its events say; true when something changed.
create or replace function millrace.quest_repair(family text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    f millrace.quest_family := millrace.quest_family_of(millrace.family_lock(quest_repair.family));
    m text;
    base text;
    changed boolean := false;
    moved int;
begin
    update millrace.quest q set state = x.state
      from (select d.day, case when exists (select from millrace.quest_completion c where c.family = d.family and c.day = d.day and c.undone_at is null) then 'done'
                               when d.day < f.today then 'missed' else 'open' end as state
              from millrace.quest d where d.family = f.family and d.state <> 'not_lived') x
     where q.family = f.family and q.day = x.day and q.state <> x.state;
    changed := found;
    changed := millrace.quest_refold(f.family) or changed;
    for m in select p.person from millrace.family_member p where p.family = f.family order by 1 loop
        changed := millrace.mood_refold(m) or changed;
        for base in select e from millrace.points_earned(m) e loop
            select millrace.points_book(m, base, case split_part(base, ':', 1) when 'quest' then r.quest when 'hobby' then r.hobby when 'seen' then r.seen else r.card end,
                case split_part(base, ':', 1) when 'seen' then 'hobby_seen' else split_part(base, ':', 1) end, f.today) into moved from millrace.quest_rule r;
            changed := changed or moved <> 0;
        end loop;
        for base in
            select distinct regexp_replace(l.key, '(#[0-9]+)?(/undo)?$', '') from millrace.points_ledger l
             where l.person = m and l.key ~ '^(quest|hobby|seen|card):'
            except select e from millrace.points_earned(m) e
        loop
            changed := millrace.points_unbook(m, base) <> 0 or changed;
        end loop;
    end loop;
    if changed then
        perform millrace.audited('quest.repair', quest_repair.family, null, caller => quest_repair.caller);
    end if;
    return changed;
end $$;
select millrace.door_is('quests', 'quest_repair', 'admin', 'staff', audited => true);
