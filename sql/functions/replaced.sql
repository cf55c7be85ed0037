-- A function whose parameters have changed is another function to Postgres, and the one before it is still there: an open door. Those that this
-- migration has not written again go. Who was given one by name has the one that took its place. Trigger functions belong to their tables, and
-- are written once.
do $$
declare
    now_xid constant xid := pg_current_xact_id()::xid;
    old record;
    one record;
begin
    for old in
        select p.oid, p.oid::regprocedure as signature, p.proname, p.proacl
          from pg_proc p
         where p.pronamespace = 'millrace'::regnamespace and p.prokind = 'f' and p.xmin <> now_xid and p.prorettype <> 'trigger'::regtype
         order by p.oid
    loop
        for one in
            select p.oid::regprocedure as signature, a.grantee::regrole as role
              from pg_proc p cross join lateral aclexplode(old.proacl) a
             where p.pronamespace = 'millrace'::regnamespace and p.proname = old.proname and p.xmin = now_xid
               and a.privilege_type = 'EXECUTE' and a.grantee <> 0 and a.grantee <> p.proowner
        loop
            execute format('grant execute on function %s to %s', one.signature, one.role);
        end loop;
        execute format('drop function %s', old.signature);
    end loop;
end $$;
