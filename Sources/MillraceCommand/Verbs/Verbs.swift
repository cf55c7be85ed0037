/// The list of everything the executable can do. A new verb is a value in a file beside this one, and a line here.
enum Verbs {
    static let tree = CommandTree(commands: commands, nouns: nouns)

    private static let commands: [Command] = [
        .migrate,
        .worker,
        .enqueue,
        .config,
        .help,
        .version,
        .completions,
    ]

    private static let nouns: [String: String] = [:]
}
