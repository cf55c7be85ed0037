import Postgres
import TestSupport

/// Everything that the schema holds, one text an object, with definitions and rights; without partitions, which maintenance makes as time goes on,
/// and without rows.
enum SchemaPrint {
    static func read(on connection: Connection) async throws -> Set<String> {
        Set(try await connection.column(statement))
    }

    /// What is in one of the two alone: empty when they are equal.
    static func differences(_ one: Set<String>, _ other: Set<String>) -> [String] {
        one.subtracting(other).sorted().map { "- \($0)" } + other.subtracting(one).sorted().map { "+ \($0)" }
    }

    private static let statement = """
        with lasting as (
            select c.* from pg_class c
             where c.relnamespace = 'millrace'::regnamespace
               and not (c.relispartition and c.relname ~ '_[0-9]+$') and c.relname !~ '_[0-9]{6,}(_|$)'
        )
        select format('column %s %s %s %s default %s, generated %s, identity %s, storage %s, collation %s', c.relname, a.attname,
                      format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attgenerated, a.attidentity, a.attstorage,
                      a.attcollation::regcollation)
          from lasting c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
          left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
         where c.relkind in ('r', 'p', 'v')
        union all
        select format('columns of %s: %s', c.relname, string_agg(a.attname, ' ' order by a.attnum))
          from lasting c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         where c.relkind in ('r', 'p') group by c.relname
        union all
        select format('constraint %s of %s: %s %s', o.conname, c.relname, pg_get_constraintdef(o.oid), o.convalidated)
          from pg_constraint o join lasting c on c.oid = o.conrelid
        union all
        select format('index %s %s', pg_get_indexdef(i.indexrelid), i.indisvalid) from pg_index i join lasting c on c.oid = i.indrelid
        union all
        select format('relation %s %s %s (%s) %s', c.relname, c.relkind, c.relpersistence, array_to_string(array(select unnest(c.reloptions) order by 1), ', '),
                      array(select a::text from unnest(c.relacl) a order by 1))
          from lasting c where c.relkind not in ('i', 'I')
        union all
        select format('view %s %s', c.relname, md5(pg_get_viewdef(c.oid))) from lasting c where c.relkind = 'v'
        union all
        select format('trigger %s', pg_get_triggerdef(t.oid)) from pg_trigger t join lasting c on c.oid = t.tgrelid where not t.tgisinternal
        union all
        select format('sequence %s %s %s %s %s of %s', c.relname, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqcache,
                      (select d.refobjid::regclass from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i')))
          from lasting c join pg_sequence s on s.seqrelid = c.oid
        union all
        select format('function %s %s %s %s %s %s %s', p.oid::regprocedure, pg_get_function_result(p.oid), md5(p.prosrc), p.prosecdef, p.provolatile, p.proconfig,
                      array(select a::text from unnest(p.proacl) a order by 1))
          from pg_proc p where p.pronamespace = 'millrace'::regnamespace
        union all
        select format('domain %s %s %s', t.typname, t.typbasetype::regtype, t.typacl) from pg_type t
         where t.typnamespace = 'millrace'::regnamespace and t.typtype = 'd'
        union all
        select format('hook %s of %s: %s, %s, %s', k.event, k.room, k.function, k.name, k.position) from millrace.hook k
        union all
        select format('made %s %s', m.kind, m.identity) from millrace.made m
        """
}
