import Postgres
package import Schema

/// Takes a room's tables, views and triggers away. Its functions go with the next refresh, which does not make them again, and its hooks with them.
enum RoomRemoval {
    /// One of its tables that has a row which no migration put there; nil: there is none. Its tables are locked from here on, so none comes later.
    static func tableWithRows(of room: RoomSchema, on connection: Connection) async throws(PostgresError) -> String? {
        let text = room.migrations.map(\.text).joined(separator: "\n")
        let seeded = Set(text.matches(of: /insert into millrace\.([a-z_]+)/).map { String($0.1) })
        let tables = SchemaNames.tables(of: room).filter { !seeded.contains($0) }
        try await tell(["tables": tables], on: connection)
        try await connection.run(
            script: """
                do $$
                declare
                    name text;
                    has_rows boolean;
                begin
                    perform set_config('millrace.with_rows', '', true);
                    foreach name in array string_to_array(current_setting('millrace.room_tables'), ',') loop
                        continue when to_regclass(format('millrace.%I', name)) is null;
                        execute format('lock table millrace.%I in access exclusive mode', name);
                        execute format('select exists (select from millrace.%I)', name) into has_rows;
                        if has_rows then
                            perform set_config('millrace.with_rows', name, true);
                            return;
                        end if;
                    end loop;
                end $$
                """)
        return try await connection.query("select current_setting('millrace.with_rows')") {
            row throws(PostgresError) in try row.string(0)
        }.first { !$0.isEmpty }
    }

    static func remove(_ room: RoomSchema, on connection: Connection) async throws(PostgresError) {
        try await tell(
            [
                "functions": SchemaNames.functions(of: room), "views": SchemaNames.views(of: room),
                "tables": SchemaNames.tables(of: room), "sequences": SchemaNames.sequences(of: room),
                "types": SchemaNames.types(of: room),
            ], on: connection)
        try await connection.run(
            script: """
                do $$
                declare
                    functions constant text[] := string_to_array(current_setting('millrace.room_functions'), ',');
                    one record;
                    sort text;
                    command text;
                    commands text[] := '{}';
                    left_over text[];
                begin
                    -- Triggers that call functions of the room, also on others' tables.
                    for one in
                        select t.tgname, t.tgrelid::regclass as relation from pg_trigger t join pg_proc p on p.oid = t.tgfoid
                         where p.pronamespace = 'millrace'::regnamespace and p.proname = any (functions) and not t.tgisinternal and t.tgparentid = 0
                    loop
                        execute format('drop trigger %I on %s', one.tgname, one.relation);
                    end loop;
                    commands := array(select 'drop routine ' || p.oid::regprocedure from pg_proc p
                                       where p.pronamespace = 'millrace'::regnamespace and p.proname = any (functions));
                    foreach sort in array array['view', 'table', 'sequence'] loop
                        commands := commands || array(
                            select format('drop %s millrace.%I', sort, n) from unnest(string_to_array(current_setting('millrace.room_' || sort || 's'), ',')) n
                             where to_regclass(format('millrace.%I', n)) is not null);
                    end loop;
                    commands := commands || array(
                        select format('drop type millrace.%I', n) from unnest(string_to_array(current_setting('millrace.room_types'), ',')) n
                         where to_regtype(format('millrace.%I', n)) is not null);
                    -- They depend on each other in any order: what cannot go yet is tried again, until nothing more goes.
                    while cardinality(commands) > 0 loop
                        left_over := '{}';
                        foreach command in array commands loop
                            begin
                                execute command;
                            exception when dependent_objects_still_exist then
                                left_over := left_over || command;
                            end;
                        end loop;
                        if cardinality(left_over) = cardinality(commands) then
                            execute left_over[1];     -- fails, and says what depends on it
                        end if;
                        commands := left_over;
                    end loop;
                end $$
                """, deadline: .seconds(120))
        try await connection.execute("delete from millrace.migration where line = $1", [.text(room.name)])
    }

    /// Names for a script, in settings of this transaction.
    private static func tell(_ names: [String: [String]], on connection: Connection) async throws(PostgresError) {
        for (sort, names) in names {
            try await connection.execute(
                "select set_config('millrace.room_' || $1, array_to_string($2::text[], ','), true)",
                [.text(sort), .texts(names)])
        }
    }
}

/// What a room's scripts make, by name.
package enum SchemaNames {
    static func all(of room: RoomSchema) -> [String] {
        tables(of: room) + sequences(of: room) + types(of: room) + views(of: room) + functions(of: room)
    }

    package static func tables(of room: RoomSchema) -> [String] {
        names(
            room.migrations,
            /^create (?:unlogged )?table (?:if not exists )?millrace\.([a-z0-9_]+)/.anchorsMatchLineEndings())
    }

    static func sequences(of room: RoomSchema) -> [String] {
        names(room.migrations, /^create sequence millrace\.([a-z0-9_]+)/.anchorsMatchLineEndings())
    }

    static func types(of room: RoomSchema) -> [String] {
        names(room.migrations, /^create (?:type|domain) millrace\.([a-z0-9_]+)/.anchorsMatchLineEndings())
    }

    static func views(of room: RoomSchema) -> [String] {
        names(room.functions, /create (?:or replace )?view millrace\.([a-z0-9_]+)/)
    }

    static func functions(of room: RoomSchema) -> [String] {
        names(room.migrations + room.functions, /create (?:or replace )?(?:function|aggregate) millrace\.([a-z0-9_]+)/)
    }

    /// Functions that a migration makes and no script makes again, as `regprocedure` prints them.
    static func functionsOfMigrations(of room: RoomSchema) -> [String] {
        room.migrations.flatMap { script in
            script.text.matches(of: /create function (millrace\.[a-z_]+\(.*?\))/).map { String($0.1) }
        }
    }

    private static func names(_ scripts: [Script], _ statement: Regex<(Substring, Substring)>) -> [String] {
        scripts.flatMap { $0.text.matches(of: statement).map { String($0.output.1) } }
    }
}
