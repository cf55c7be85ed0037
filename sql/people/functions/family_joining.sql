-- Membership of families. A person joins by a parent's invitation and its own acceptance. A back end without claims acts for the app and
-- may add anybody. No parent decides about another parent.

-- The family, locked, for a caller that may act in it: a back end (`me` is null), or a member; with `as_parent` only a parent. The locking
-- statement checks the right too, so a caller without it delays nobody. The right is checked again after the lock, because it may have been
-- withdrawn during the wait.
create or replace function millrace.family_lock_as(family text, me text, as_parent boolean) returns millrace.family
language plpgsql volatile as $$
#variable_conflict use_column
declare
    f millrace.family;
begin
    select x.* into f from millrace.family x
     where x.family = family_lock_as.family and (me is null or millrace.family_has(x.family, me, as_parent))
       for no key update;
    if f.family is null and me is null then                -- who may act in none of them is told the same of every family
        perform millrace.refuse(format('there is no family %L', left(family_lock_as.family, 60)), 'family', null, 'P0002', 'not_found');
    end if;
    if f.family is null or (me is not null and not millrace.family_has(f.family, me, as_parent)) then
        perform millrace.refuse(case when as_parent then 'only a parent of the family may do this' else 'the actor is not a member of this family' end, 'actor',
            case when as_parent then 'Ask a parent.' else 'Only members can see and do this.' end, '42501', 'permission');
    end if;
    return f;
end $$;

create or replace function millrace.family_has(the_family text, the_person text, as_parent boolean) returns boolean
language sql volatile as $$
    select exists (select from millrace.family_member m where m.person = the_person and m.family = the_family and (not as_parent or m.role = 'parent'))
$$;

create or replace function millrace.valid_role(role text) returns void
language plpgsql immutable as $$
begin
    if role is null or role not in ('teen', 'parent') then
        perform millrace.refuse(format('the role %L is unknown', left(role, 60)), 'role', 'Give teen or parent.');
    end if;
end $$;

-- False: it was so already. A person who is in another family leaves that one first, automatically.
create or replace function millrace.member_put(the_family text, the_person text, the_role text, t timestamptz) returns boolean
language plpgsql volatile as $$
declare
    old millrace.family_member;
begin
    select * into old from millrace.family_member m where m.person = the_person for no key update;
    if old.family = the_family and old.role = the_role then
        return false;
    end if;
    insert into millrace.family_member as m (person, family, role, joined_at)
    values (the_person, the_family, the_role, t)
        on conflict (person) do update
           set family = excluded.family, role = excluded.role, joined_at = case when m.family is null then excluded.joined_at else m.joined_at end
         where m.family is null or m.family = excluded.family;
    if not found then
        perform millrace.refuse('this person is in another family', 'person', 'The person must leave it first, with family_leave.', '55000', 'conflict');
    end if;
    if the_role <> 'parent' then
        delete from millrace.family_invitation i where i.invited_by = the_person;
    end if;
    return true;
end $$;

-- True: the person is a member now, or has another role. For oneself an open invitation becomes a membership with the role that it names; a
-- parent may also become a teen without one. For somebody else it returns false, and a parent has made an invitation.
create or replace function millrace.family_join(family text, person text, role text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.subject(family_join.caller);
    t timestamptz := millrace.now();
    f text;
    invited millrace.family_invitation;
    old millrace.family_member;
    the_role text := family_join.role;
begin
    perform millrace.valid_name(family_join.family, 'family');
    perform millrace.valid_name(family_join.person, 'person');
    if me is null then
        perform millrace.valid_role(the_role);
        f := (millrace.family_lock(family_join.family)).family;
        delete from millrace.family_invitation i where i.family = f and i.person = family_join.person;
        return millrace.member_put(f, family_join.person, the_role, t);
    end if;
    if me <> family_join.person then
        perform millrace.invitation_make(family_join.family, family_join.person, the_role, me);
        return false;
    end if;
    if the_role is not null then
        perform millrace.valid_role(the_role);
    end if;
    select x.family into f from millrace.family x
     where x.family = family_join.family and (millrace.family_has(x.family, me, false) or (millrace.invitation_of(x.family, me)).family is not null)
       for no key update;
    select * into old from millrace.family_member m where m.person = me;
    invited := millrace.invitation_of(f, me);              -- behind the lock
    if old.family = f and (the_role is null or the_role = old.role) and (invited.role is null or the_role = old.role) then
        return false;
    end if;
    if invited.role is null and not (coalesce(old.family = f, false) and old.role = 'parent') then
        perform millrace.refuse('there is no open invitation', 'family', 'A parent of the family makes one with family_invite.', '42501', 'permission');
    end if;
    if invited.role is not null and the_role <> invited.role and not coalesce(old.family = f, false) then
        perform millrace.refuse(format('the invitation is for the role %s', invited.role), 'role', 'Give that role, or null.', '42501', 'permission');
    end if;
    if not millrace.member_put(f, me, case when old.family = f and old.role = 'parent' and the_role = 'teen' then 'teen' else invited.role end, t) then
        return false;
    end if;
    delete from millrace.family_invitation i where i.family = f and i.person = me;
    return true;
end $$;
select millrace.door_is('people', 'family_join', 'client, worker', 'actor family', 'Joins a family.',
    words => '{"role": ["teen", "parent"]}', who_may => array['let somebody in without asking them: back end, staff',
        'put them into another family: nobody', 'make them a parent, once they are invited to be one: itself, back end, staff']);

-- The open invitation, or a declined one that can still be accepted, because a no may be a mistake.
create or replace function millrace.invitation_of(the_family text, the_person text) returns millrace.family_invitation
language sql volatile as $$
    select i from millrace.family_invitation i where i.family = the_family and i.person = the_person and i.expires_at > millrace.now()
$$;

-- Until when it is open; null: the person already has that role in the family.
create or replace function millrace.invitation_make(the_family text, the_person text, the_role text, me text) returns timestamptz
language plpgsql volatile as $$
declare
    f millrace.family;
    t timestamptz;
    old millrace.family_invitation;
begin
    perform millrace.valid_role(the_role);
    f := millrace.family_lock_as(the_family, me, true);
    t := millrace.now();
    if the_person = me then
        perform millrace.refuse('a person cannot invite themselves', 'person', 'Name somebody else.');
    end if;
    if exists (select from millrace.family_member m where m.person = the_person and m.family = f.family and m.role = the_role) then
        return null;
    end if;
    old := millrace.invitation_of(f.family, the_person);
    if old.declined_at is not null then
        perform millrace.refuse('this person has declined', 'person', format('Invite again after %s; until then the person may still join.',
            to_char(old.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')), '55000', 'wrong_state');
    end if;
    if (select count(*) from millrace.family_invitation i where i.family = f.family and i.person <> the_person and i.expires_at > t) >= millrace.counted('invitations') then
        perform millrace.refuse_quota('the family has 50 open invitations', 'family', 'Withdraw one with family_uninvite.', millrace.counted('invitations'), millrace.counted('invitations'),
            (select min(i.expires_at) from millrace.family_invitation i where i.family = f.family and i.expires_at > t));
    end if;
    insert into millrace.family_invitation as i (family, person, role, invited_by, invited_at, expires_at)
    values (f.family, the_person, the_role, me, t, t + interval '14 days')
        on conflict (family, person) do update
           set role = excluded.role, invited_by = excluded.invited_by, invited_at = excluded.invited_at, expires_at = excluded.expires_at, declined_at = null;
    return t + interval '14 days';
end $$;

-- For a parent of the family, or a back end. The person joins by its own family_join; nothing is sent.
create or replace function millrace.family_invite(family text, person text, role text, actor text default null, caller millrace.caller_name default current_user) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.actor_of(family_invite.actor, caller => family_invite.caller);
begin
    perform millrace.valid_name(family_invite.family, 'family');
    perform millrace.valid_name(family_invite.person, 'person');
    return millrace.invitation_make(family_invite.family, family_invite.person, family_invite.role, me);
end $$;
select millrace.door_is('people', 'family_invite', 'client, worker', 'actor member', 'Invites somebody into a family.',
    words => '{"role": ["teen", "parent"]}',
    who_may => array['invite somebody into their family: parent, back end, staff']);

-- The person declines; a parent or a back end withdraws. False: there was nothing to decline or to withdraw.
create or replace function millrace.family_uninvite(family text, person text, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.actor_of(family_uninvite.actor, caller => family_uninvite.caller);
begin
    perform millrace.valid_name(family_uninvite.family, 'family');
    perform millrace.valid_name(family_uninvite.person, 'person');
    if me = family_uninvite.person then
        update millrace.family_invitation i set declined_at = millrace.now()
         where i.family = family_uninvite.family and i.person = me and i.declined_at is null and i.expires_at > millrace.now();
        return found;
    end if;
    perform millrace.family_lock_as(family_uninvite.family, me, true);
    delete from millrace.family_invitation i
     where i.family = family_uninvite.family and i.person = family_uninvite.person and i.declined_at is null and i.expires_at > millrace.now();
    return found;
end $$;
select millrace.door_is('people', 'family_uninvite', 'client, worker', 'actor member',
    'Withdraws or declines an invitation.',
    who_may => array['decline an invitation to them, or withdraw it: itself, parent, back end, staff']);

-- A person's own invitations, or with `of_family` those of a family for its parents, in the order of their names, after the one in `after`.
create or replace function millrace.family_invitations(
    of_family text default null, of_person text default null, after text default null, page int default 50, actor text default null,
    caller millrace.caller_name default current_user
) returns table (family text, person text, role text, invited_by text, invited_at timestamptz, expires_at timestamptz, declined_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.actor_of(family_invitations.actor, caller => family_invitations.caller);
    whose text := coalesce(of_person, case when of_family is null then me end);
    behind text := coalesce(family_invitations.after, '');
begin
    perform millrace.valid_page(family_invitations.page);
    if of_family is null and whose is null then
        perform millrace.refuse('neither a family nor a person is given', 'of_family', 'Give one of them.');
    end if;
    if me is not null and whose is distinct from me and not coalesce(millrace.family_has(of_family, me, true), false) then
        perform millrace.refuse('only that person or a parent of the family may see invitations', 'actor', 'Act as one of them.', '42501', 'permission');
    end if;
    return query
        select i.family, i.person, i.role, i.invited_by, i.invited_at, i.expires_at, i.declined_at from millrace.family_invitation i
         where (of_family is null or i.family = of_family) and (whose is null or i.person = whose) and i.expires_at > millrace.now()
           and case when whose is not null then i.family else i.person end > behind
         order by case when whose is not null then i.family else i.person end limit family_invitations.page;
end $$;
select millrace.door_is('people', 'family_invitations', 'client, worker', 'actor member',
    'Who is invited to a family.', who_may => array['see who is invited: parent, back end, staff',
        'see what they are invited to: itself, back end, staff']);

-- A person's family, who is in it, and what the person is invited to: what an app asks for first after a reinstall. Parents see whom the
-- family has invited. At most 500 members; a person is in one family at a time.
create or replace function millrace.family_mine(actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(family_mine.actor, caller => family_mine.caller);
    t timestamptz := millrace.now();
    m millrace.family_member;
    f millrace.family;
begin
    select * into m from millrace.family_member x where x.person = me and x.family is not null;
    select * into f from millrace.family x where x.family = m.family;
    return jsonb_build_object('person', me, 'family', f.family, 'role', m.role, 'joined_at', m.joined_at, 'zone', f.zone, 'week_starts', f.week_starts,
        'members', coalesce((
            select jsonb_agg(jsonb_build_object('person', x.person, 'role', x.role, 'joined_at', x.joined_at, 'display_name', p.display_name, 'avatar', p.avatar)
                   order by x.joined_at, x.person)
              from (select * from millrace.family_member y where y.family = f.family order by y.joined_at, y.person limit millrace.most('page')) x
              left join millrace.profile p on p.person = x.person), '[]'),
        'invited', coalesce((
            select jsonb_agg(jsonb_build_object('person', i.person, 'role', i.role, 'invited_by', i.invited_by, 'invited_at', i.invited_at, 'expires_at', i.expires_at,
                       'declined_at', i.declined_at) order by i.person)
              from millrace.family_invitation i where i.family = f.family and m.role = 'parent' and i.expires_at > t), '[]'),
        'invited_to', coalesce((
            select jsonb_agg(jsonb_build_object('family', i.family, 'role', i.role, 'invited_by', i.invited_by, 'invited_by_name', millrace.display_name(i.invited_by),
                       'invited_at', i.invited_at, 'expires_at', i.expires_at, 'declined_at', i.declined_at) order by i.family)
              from (select * from millrace.family_invitation y where y.person = me and y.expires_at > t order by y.family limit millrace.most('page')) i), '[]'));
end $$;
select millrace.door_is('people', 'family_mine', 'client, worker', 'actor person',
    'The person''s family, its members, and open invitations.',
    who_may => array['see their family, and what they are invited to: itself, back end, staff']);

-- For the person itself; a parent may remove a teen, and a back end anybody. Nothing is deleted: points, moods and streaks stay the
-- person's.
create or replace function millrace.family_leave(family text, person text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    f millrace.family;
    me text := millrace.subject(family_leave.caller);
begin
    perform millrace.valid_name(family_leave.family, 'family');
    perform millrace.valid_name(family_leave.person, 'person');
    if me = family_leave.person and not millrace.family_has(family_leave.family, me, false) then
        return false;
    end if;
    f := millrace.family_lock_as(family_leave.family, me, me is distinct from family_leave.person);
    if me <> family_leave.person and millrace.family_has(f.family, family_leave.person, true) then
        perform millrace.refuse('only the parent themselves can leave', 'person', 'Ask that parent, or a back end of the app.', '42501', 'permission');
    end if;
    update millrace.family_member m set family = null, role = null
     where m.person = family_leave.person and m.family = f.family;
    if not found then
        return false;
    end if;
    -- An invitation stands and falls with the parent who made it.
    delete from millrace.family_invitation i where i.family = f.family and i.invited_by = family_leave.person;
    return true;
end $$;
select millrace.door_is('people', 'family_leave', 'client, worker', 'actor family',
    'Leaves a family, or removes somebody from it.',
    who_may => array['take them out of the family: itself, parent, back end, staff',
        'take a parent out of the family: back end, staff']);

-- For a parent, or a back end. False: the family is in this zone already. What follows the clock of the family moves by triggers of its room.
create or replace function millrace.family_zone(family text, zone text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    f millrace.family;
begin
    perform millrace.valid_name(family_zone.family, 'family');
    perform millrace.valid_zone(family_zone.zone);
    f := millrace.family_lock_as(family_zone.family, millrace.subject(family_zone.caller), true);
    if f.zone = family_zone.zone then
        return false;
    end if;
    update millrace.family x set zone = family_zone.zone where x.family = f.family;
    return true;
end $$;
select millrace.door_is('people', 'family_zone', 'client, worker', 'actor family',
    'Moves a family to another time zone.',
    who_may => array['move the family to another zone: parent, back end, staff']);

create or replace function millrace.people_expire(most int default 20000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    gone bigint;
begin
    delete from millrace.family_invitation i
     where i.ctid = any (array(select x.ctid from millrace.family_invitation x where x.expires_at < millrace.now() order by x.expires_at limit most));
    get diagnostics gone = row_count;
    return gone;
end $$;
