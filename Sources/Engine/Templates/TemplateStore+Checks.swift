package import Postgres

/// A version goes live only after it was compiled: by the command line before it publishes, or by a worker when SQL has published. Both use
/// `Lint`, so they refuse the same templates.
extension TemplateStore {
    /// Compiles versions that nobody has compiled yet, and records the results.
    package static func checkUnchecked(on connection: Connection) async throws(PostgresError) {
        let most = 20
        while true {
            let sources = try await connection.query(
                "select name, locale, version, subject, html, plain, variables from millrace.template_unchecked($1)",
                [.int4(Int32(most))]
            ) { row throws(PostgresError) in
                MailSource(
                    name: try row.string(0), locale: try row.string(1), version: Int(try row.int(2)),
                    subject: try row.string(3), html: row.optionalString(4), plain: try row.string(5),
                    variables: try row.json(6))
            }
            for source in sources { try await hand(Lint.problem(with: source), to: source, on: connection) }
            if sources.count < most { return }
        }
    }

    /// Records the compiler's result for a published version: nil, or what is wrong with it. False when there was a result already.
    @discardableResult
    package static func hand(
        _ problem: String?, to source: MailSource, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.template_checked($1, $2, $3, $4)",
            [.text(source.name), .text(source.locale), .int4(Int32(clamping: source.version)), .text(problem)]
        )
    }
}

extension Lint {
    /// The first of the findings, in a sentence; nil for a template that may be used.
    package static func problem(with source: MailSource) -> String? {
        findings(source).first.map { "\($0.part), line \($0.line): \($0.sentence); \($0.hint)" }
    }
}
