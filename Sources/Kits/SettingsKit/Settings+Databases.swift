extension Settings {
    /// The databases that one process serves; none where one alone is named, by DATABASE_URL.
    package var databases: [NamedDatabase] {
        guard case .text(let text)? = entry(.databases)?.value else { return [] }
        return (try? DatabaseList.read(text)) ?? []
    }

    /// Keys that belong elsewhere than their hash says.
    package var routes: [String: String] { text(.routes).flatMap(RouteList.read) ?? [:] }

    /// The names, for sentences: "eu and us".
    package var databaseNames: String {
        let names = databases.map(\.name)
        guard let last = names.last, names.count > 1 else { return names.first ?? "" }
        return names.dropLast().joined(separator: ", ") + " and " + last
    }

    /// Those of one of the databases: its address is the address, and links lead to its part of the listener.
    package func chosen(_ database: NamedDatabase) -> Settings {
        var settings = self
        settings.point(.databaseURL, at: database.url)
        if let direct = database.direct { settings.point(.directURL, at: direct) }
        if let url = text(.publicURL) {
            settings.point(.publicURL, at: (url.hasSuffix("/") ? String(url.dropLast()) : url) + "/\(database.name)")
        }
        if let path = text(.waker) {
            settings.point(.waker, at: path.replacing(Self.placeholder, with: database.name))
        }
        settings.drop(.databases)
        return settings
    }

    /// By name, as `--database` has it.
    package func choosing(_ name: String) throws(ValueRefusal) -> Settings {
        guard !databases.isEmpty else {
            throw ValueRefusal(complaint: "--database chooses among MILLRACE_DATABASES, which is not set")
        }
        guard let database = databases.first(where: { $0.name == name }) else {
            throw ValueRefusal(
                complaint: "there is no database \(Secrets.quoted(name)) in MILLRACE_DATABASES, only \(databaseNames)")
        }
        return chosen(database)
    }

    /// The same where it was given; a wrong name is a problem of the settings.
    package mutating func choose(_ name: String?) {
        guard let name else { return }
        do throws(ValueRefusal) {
            self = try choosing(name)
        } catch {
            problems.append(error.complaint)
        }
    }

    /// What is set for one database and for several, and cannot be both.
    package mutating func judgeDatabases() {
        guard let several = entry(.databases), several.value != nil else { return }
        if let one = entry(.databaseURL), one.value != nil {
            switch (one.origin.isFlag, several.origin.isFlag) {
            case (true, false): return drop(.databases)
            case (false, true): break
            case (true, true):
                problems.append("--database-url and --databases are both given: give one of them")
            case (false, false):
                problems.append("DATABASE_URL and MILLRACE_DATABASES are both set: keep one of them")
            }
        }
        drop(.databaseURL)
        let names = databases.map(\.name)
        for (key, name) in routes.sorted(by: { $0.key < $1.key }) where !names.isEmpty && !names.contains(name) {
            problems.append(
                "MILLRACE_ROUTES sends \(Secrets.quoted(key)) to \(name), which is not in MILLRACE_DATABASES: \(databaseNames)"
            )
        }
        if text(.directURL) != nil {
            problems.append(
                "MILLRACE_DIRECT_URL is for one database: with MILLRACE_DATABASES write NAME.direct=postgres://… there")
        }
        if databases.count > 1, let path = text(.waker), !path.contains(Self.placeholder) {
            problems.append(
                "MILLRACE_WAKER is for one database: with several write \(Self.placeholder) in the path for the name")
        }
    }

    private static let placeholder = "{database}"

    private mutating func drop(_ setting: Setting) {
        guard let index = entries.firstIndex(where: { $0.setting.name == setting.name }) else { return }
        entries[index].value = nil
        entries[index].text = nil
        entries[index].origin = .fallback
    }
}

extension Origin {
    fileprivate var isFlag: Bool {
        if case .flag = self { true } else { false }
    }
}
