package import Postgres

extension TemplateStore {
    /// The published template of a name for the first of the locales that has one, or one version of it; nil if there is none.
    package static func source(
        _ name: String, locales: [String], version: Int? = nil, on connection: Connection
    ) async throws(PostgresError) -> MailSource? {
        try await connection.query(
            "select locale, version, subject, html, plain, variables from millrace.template_source($1, $2, $3)",
            [.text(name), .texts(locales), .int4(version.map { Int32(clamping: $0) })]
        ) { row throws(PostgresError) in
            MailSource(
                name: name, locale: try row.string(0), version: Int(try row.int(1)), subject: try row.string(2),
                html: row.optionalString(3), plain: try row.string(4), variables: try row.json(5))
        }.first
    }

    /// For the first of the locales that has any: the published template, else the built-in one.
    package static func live(
        _ name: String, locales: [String], on connection: Connection
    ) async throws(PostgresError) -> MailSource? {
        let published = try await source(name, locales: locales, on: connection)
        guard let builtIn = BuiltIn.source(name, locales: locales) else { return published }
        guard let published else { return builtIn }
        func place(_ source: MailSource) -> Int { locales.firstIndex(of: source.locale) ?? locales.count }
        return place(published) <= place(builtIn) ? published : builtIn
    }

    /// Publishes compiled templates, so they are live at once. Returns the version; that of the live one if nothing has changed.
    package static func publish(
        _ source: MailSource, note: String?, on connection: Connection
    ) async throws(PostgresError) -> Int {
        let versions = try await connection.query(
            "select millrace.template_publish($1, $2, $3, $4, $5, $6, $7)",
            [
                .text(source.name), .text(source.subject), .text(source.html), .text(source.plain),
                .json(source.variables), .text(source.locale), .text(note),
            ]
        ) { row throws(PostgresError) in Int(try row.int(0)) }
        var published = source
        published.version = versions.first ?? 0
        try await hand(Lint.problem(with: source), to: published, on: connection)
        return published.version
    }

    /// False where it is live already.
    package static func use(
        _ name: String, version: Int, locale: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.template_use($1, $2, $3)",
            [.text(name), .int4(Int32(clamping: version)), .text(locale)]
        )
    }
}
