"""The schema and the rooms on one version, and a print of all that was made, to hold beside that of another version."""

import json

# What a migrate makes, a line an object. Partitions have the day or a number in their name. Left out is what Postgres itself writes
# differently from version to version: bodies in SQL's own words and views, which it prints from their trees, constraints "not null"
# (rows of pg_constraint since 18) and the right MAINTAIN (since 17).
PRINT = r"""
with spaces as (select oid, nspname from pg_namespace where nspname ~ '^millrace'),
relations as (
    select c.*, n.nspname || '.' || regexp_replace(c.relname, '[0-9]{6,}', '#', 'g') as called
      from pg_class c join spaces n on n.oid = c.relnamespace)
select line from (
    select format('relation %s %s %s %s', called, relkind, relpersistence, reloptions) from relations
    union all
    select format('column %s.%s %s %s %s %s', r.called, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
                  pg_get_expr(d.adbin, d.adrelid))
      from relations r join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
      left join pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum where r.relkind in ('r', 'p', 'v', 'c')
    union all
    select format('index %s', regexp_replace(pg_get_indexdef(oid), '[0-9]{6,}', '#', 'g')) from relations where relkind in ('i', 'I')
    union all
    select format('constraint %s %s %s', r.called, regexp_replace(k.conname, '[0-9]{6,}', '#', 'g'),
                  regexp_replace(pg_get_constraintdef(k.oid), '[0-9]{6,}', '#', 'g'))
      from relations r join pg_constraint k on k.conrelid = r.oid where k.contype <> 'n'
    union all
    select format('trigger %s', regexp_replace(pg_get_triggerdef(t.oid), '[0-9]{6,}', '#', 'g'))
      from relations r join pg_trigger t on t.tgrelid = r.oid where not t.tgisinternal
    union all
    select format('function %s(%s) %s %s', n.nspname || '.' || p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
                  array[p.prosecdef::text, p.provolatile::text, p.proparallel::text, p.proconfig::text, md5(p.prosrc)])
      from pg_proc p join spaces n on n.oid = p.pronamespace
    union all
    select format('type %s.%s %s %s', n.nspname, regexp_replace(t.typname, '[0-9]{6,}', '#', 'g'), t.typtype, t.typbasetype::regtype)
      from pg_type t join spaces n on n.oid = t.typnamespace
    union all
    select format('right %s %s %s', r.called, x.grantee, x.privilege_type)
      from relations r, aclexplode(r.relacl) x where x.privilege_type <> 'MAINTAIN' and x.grantee <> r.relowner
    union all
    select format('right %s.%s(%s) %s', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid), x.grantee = p.proowner)
      from pg_proc p join spaces n on n.oid = p.pronamespace, aclexplode(p.proacl) x
) every(line) order by line collate "C";
"""


def printed(server, database):
    return server.sql(PRINT, database)


def difference(found, wanted, most=6):
    """What is on one side only, as few lines."""
    more, less = sorted(set(found) - set(wanted)), sorted(set(wanted) - set(found))
    lines = [f"+ {line[:200]}" for line in more[:most]] + [f"- {line[:200]}" for line in less[:most]]
    rest = len(more) + len(less) - len(lines)
    return lines + ([f"and {rest} more"] if rest > 0 else [])


def schema(server, millrace):
    """The core, migrated twice; and what doctor says of it. Returns what was made."""
    server.sql("create database core")
    millrace.run(server, "migrate", database="core")
    made = printed(server, "core")
    again = millrace.run(server, "migrate", database="core")
    if printed(server, "core") != made or "applied" in again.stdout + again.stderr:
        raise RuntimeError("a second migrate changed something")
    judge_doctor(server, millrace, "core")
    return made


def judge_doctor(server, millrace, database):
    # 10 and 11: this server is not safe from crashes, by its settings.
    said = millrace.run(server, "doctor", "--json", database=database, allowed=(0, 10, 11)).stdout
    checks = {check["check"]: check for check in json.loads(said)["checks"]}
    # By name, so that a check that is not made is noticed.
    for name in ("server version", "schema", "schema contents", "search paths", "functions of others", "partitions", "rooms"):
        if checks[name]["result"] != "ok":
            raise RuntimeError(f"doctor: {name}: {checks[name]['sentence']}")


def rooms(server, millrace, each):
    """Every room alone with what it needs (only with `each`), then all, then none again. Returns how many, and what all of them made."""
    core = printed(server, "core")
    names = [room["room"] for room in json.loads(millrace.run(server, "rooms", "list", "--json", database="core").stdout)["rooms"]]
    for number, name in enumerate(names if each else []):
        database = f"room_{number}"
        server.sql(f"create database {database} template core")
        millrace.run(server, "rooms", "add", name, database=database)
        millrace.run(server, "rooms", "check", database=database)
        server.sql(f"drop database {database}")
    server.sql("create database every template core")
    millrace.run(server, "migrate", "--rooms", "all", database="every")
    millrace.run(server, "rooms", "check", database="every")
    judge_doctor(server, millrace, "every")
    made = printed(server, "every")
    server.sql("create database gone template every")
    millrace.run(server, "rooms", "remove", *reversed(names), "--with-data", "--yes", database="gone")
    millrace.run(server, "rooms", "check", database="gone")
    if left := difference(printed(server, "gone"), core):
        raise RuntimeError("the rooms are removed, and the database is not what the core alone makes: " + "; ".join(left))
    server.sql("drop database gone")
    return len(names), made
