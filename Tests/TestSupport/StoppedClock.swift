package import Postgres

extension Connection {
    /// From now on the clock of this database, one of `Template.movableClock`, moves by `millrace.test_clock_advance` alone: what is counted by time does
    /// not depend on how fast the machine is.
    package func stopClock() async throws {
        try await run(
            """
            do $do$ begin
                execute format($$create or replace function millrace.now() returns timestamptz
                    language sql volatile security definer set search_path = pg_catalog, pg_temp
                    as 'select timestamptz ''%s'' + (select shift from millrace.test_clock)'$$, pg_catalog.clock_timestamp());
            end $do$
            """)
    }
}
