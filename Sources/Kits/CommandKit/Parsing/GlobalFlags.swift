extension CommandFlag {
    /// The flags every command takes, anywhere on the line.
    package static let global: [CommandFlag] = [
        .toggle("json", help: "Print one JSON object."),
        .toggle("jsonl", help: "Print a list as JSON lines, one object a line."),
        Setting.databaseURL.flag,
        .single(
            "database", "NAME", environment: .none, help: "One of the databases that MILLRACE_DATABASES names."),
        Setting.noColor.flag,
        .toggle("quiet", short: "q", help: "Print results and errors only."),
        .toggle("verbose", short: "v", help: "Print more about what is done."),
        .single(
            "timeout", "DURATION", .duration(.milliseconds(1) ... .seconds(7 * 86_400)),
            help: "Stop waiting after this long, with exit code 7."),
        .toggle("yes", help: "Do not ask for confirmation before a destructive change."),
        .toggle("help", short: "h", environment: .none, help: "Show the help of a command."),
        .toggle("version", environment: .none, help: "Print the version."),
    ]
}
