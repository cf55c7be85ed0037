import CommandKit
package import Postgres

/// The text of the schema's functions, out of which a safeguard is taken for runs that must be caught.
package enum FunctionText {
    package static func replace(
        _ text: String, with other: String, in function: String, on connection: Connection
    ) async throws {
        let source =
            try await connection.text(
                "select pg_get_functiondef(p.oid) from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'millrace' and p.proname = $1",
                [.text(function)]
            )
        guard source.contains(text) else {
            throw Failure("the function \(function) has changed: the break finds nothing to take out")
        }
        try await connection.run(script: .shipped(Array(source.replacing(text, with: other).utf8)))
    }
}
