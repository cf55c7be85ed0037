extension Settings {
    /// Reads every setting, and continues after a mistake, so that all mistakes are reported at once.
    package static func load(
        given: [String: Given] = [:], surroundings: Surroundings, known: [String] = [], table: SettingsTable
    ) -> Settings {
        var settings = Settings()
        let rows = table.settings + Setting.providers(in: surroundings.environment)
        for setting in rows { settings.take(setting, given, surroundings) }
        settings.warnAboutUnknown(surroundings.environment, known: known, table: rows)
        for judge in table.judges { judge(&settings) }
        return settings
    }

    private mutating func take(_ setting: Setting, _ flags: [String: Given], _ surroundings: Surroundings) {
        let environment = surroundings.environment
        let plain = environment[setting.environment].flatMap { $0.isEmpty ? nil : $0 }
        let file = setting.fileTwin.flatMap { environment[$0] }.flatMap { $0.isEmpty ? nil : $0 }
        if plain != nil, file != nil, let twin = setting.fileTwin {
            problems.append("\(setting.environment) and \(twin) are both set: keep one of them")
        }
        var entry = Entry(setting: setting, origin: .fallback)
        if let given = flags[setting.flagName], let last = given.values.last {
            entry.origin = given.origin
            if setting.isRepeated {
                // Each was checked by the parser; together they may still contradict each other.
                check(given.values.map(Self.spelling).joined(separator: ","), as: "--\(setting.flagName)", &entry)
            } else {
                entry.text = Self.spelling(last)
                entry.value = last
            }
        } else if let plain {
            entry.origin = .environment(setting.environment)
            check(plain, as: setting.environment, &entry)
        } else if let file, let twin = setting.fileTwin {
            entry.origin = .file(path: file, variable: twin)
            if let text = content(of: file, named: twin, hasLines: setting.hasLines, surroundings) {
                check(text, as: twin, &entry)
            }
        } else if setting.name == Setting.databaseURL.name {
            libpqVariables(environment, &entry)
        } else if setting.name == Setting.directory.name {
            Self.chooseDirectory(surroundings, &entry)
        } else if let fallback = setting.fallback {
            check(fallback, as: setting.environment, &entry)
        }
        entries.append(entry)
    }

    private mutating func check(_ text: String, as name: String, _ entry: inout Entry) {
        entry.text = text
        do throws(ValueRefusal) {
            entry.value = try entry.setting.kind.read(text, secret: entry.setting.secrecy != .open)
        } catch {
            problems.append("\(name) \(error.complaint)")
        }
    }

    private mutating func content(
        of path: String, named twin: String, hasLines: Bool, _ surroundings: Surroundings
    ) -> String? {
        do throws(FileProblem) {
            var bytes = try surroundings.read(path, 65_536)
            // One line break is what an editor leaves; more of them are a mistake the check will find.
            if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
            if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
            guard let text = String(validating: bytes, as: UTF8.self), !text.isEmpty else {
                problems.append("\(twin) names a file that \(bytes.isEmpty ? "is empty" : "is not UTF-8")")
                return nil
            }
            guard hasLines || !text.contains(where: \.isNewline) else {
                problems.append("\(twin) names a file of more than one line")
                return nil
            }
            return text
        } catch {
            problems.append("\(twin) names a file that cannot be read: \(Secrets.quoted(path)): \(error.complaint)")
            return nil
        }
    }

    private static func spelling(_ value: Value) -> String {
        switch value {
        case .text(let text): text
        case .integer(let number): String(number)
        case .duration(let duration): DurationText.spell(duration)
        case .boolean(let isOn): isOn ? "on" : "off"
        }
    }
}

extension Settings {
    /// Without a DATABASE_URL libpq looks here itself; we only say so, and check what would fail late.
    private mutating func libpqVariables(_ environment: [String: String], _ entry: inout Entry) {
        let names = [
            ("PGSERVICE", "service"), ("PGHOST", "host"), ("PGHOSTADDR", "hostaddr"), ("PGPORT", "port"),
            ("PGUSER", "user"), ("PGPASSWORD", "password"), ("PGDATABASE", "dbname"), ("PGSSLMODE", "sslmode"),
        ]
        let set = names.compactMap { name, key in
            environment[name].flatMap { $0.isEmpty ? nil : (name: name, key: key, value: $0) }
        }
        // A lone PGUSER or PGPASSWORD, as psql users have it, names no database.
        guard set.contains(where: { ["service", "host", "hostaddr", "dbname"].contains($0.key) }) else { return }
        entry.origin = .environment(set.map(\.name).joined(separator: ", "))
        entry.text = set.map { item in
            let value = item.key == "password" ? Secrets.mask : item.value
            return "\(item.key)='\(value.map { $0 == "'" || $0 == "\\" ? "\\\($0)" : String($0) }.joined())'"
        }.joined(separator: " ")
        for item in set where item.key == "port" {
            for port in item.value.split(separator: ",", omittingEmptySubsequences: false)
            where !port.isEmpty && !ConnectionText.isPort(port) {
                problems.append("PGPORT takes a whole number from 1 to 65535, not \(Secrets.quoted(item.value))")
            }
        }
    }

    /// Beside the project if we may write there, as its data belongs to it; else in the user's home.
    private static func chooseDirectory(_ surroundings: Surroundings, _ entry: inout Entry) {
        let here = surroundings.workingDirectory
        let home = surroundings.environment["HOME"] ?? ""
        let xdg = surroundings.environment["XDG_DATA_HOME"] ?? ""
        if surroundings.isWritableDirectory(here) {
            entry.text = here + (here.hasSuffix("/") ? "" : "/") + ".millrace"
            entry.note = "beside the project: this directory is writable"
        } else if xdg.hasPrefix("/") {
            entry.text = "\(xdg)/millrace"
            entry.note = "in XDG_DATA_HOME: this directory is not writable"
        } else if home.hasPrefix("/") {
            entry.text = "\(home)/.local/share/millrace"
            entry.note = "in the home directory: this directory is not writable"
        } else {
            entry.note = "this directory is not writable, and HOME is not set"
        }
        entry.value = entry.text.map(Value.text)
    }

    private mutating func warnAboutUnknown(_ environment: [String: String], known: [String], table: [Setting]) {
        let names = table.map(\.environment) + table.compactMap(\.fileTwin) + known
        let listed = Set(names)
        for name in environment.keys.sorted() where name.hasPrefix("MILLRACE_") && !listed.contains(name) {
            let ours = names.filter { $0.hasPrefix("MILLRACE_") }
            // The common prefix does not count: only the rest is compared. DATABASE_URL and others of ours have none.
            let rest = String(name.dropFirst(9))
            let near = Suggestions.closest(to: rest, among: ours.map { String($0.dropFirst(9)) })
            let guess =
                listed.contains(rest) ? rest : near.flatMap { near in ours.first { $0.dropFirst(9) == near } }
            warnings.append("unknown variable \(Secrets.masked(name))\(guess.map { "; did you mean \($0)?" } ?? "")")
        }
    }
}
