import Encryption
import MillraceQueues

extension Command {
    static let keysGenerate = Command(
        ["keys", "generate"],
        summary: "Make an encryption key",
        discussion: """
            Prints id:base64, as MILLRACE_ENCRYPTION_KEY takes it. It is a secret. Without the key nobody can read \
            what it has encrypted; keep it apart from the backups of the database.
            """,
        flags: [
            .single(
                "id", "ID",
                .custom(expects: "an id of 1 to 32 letters, digits and _ -") { text in
                    Key.isID(text) ? nil : "takes an id of 1 to 32 letters, digits and _ -"
                }, environment: .none, help: "The key's id; derived from the key if not given.")
        ],
        examples: [
            Example("millrace keys generate > key", "for MILLRACE_ENCRYPTION_KEY_FILE"),
            Example("millrace keys generate --id y2030", "with a name of its own"),
        ], settings: .unused
    ) { invocation in
        let key = Key.random(id: invocation.parsed.string("id"))
        invocation.console.show(["id": .string(key.id), "key": .string(key.spelled)]) {
            invocation.console.print(key.spelled)
        }
        return .done
    }

    static let keysList = Command(
        ["keys", "list"],
        summary: "List the encryption keys that are here, and those that jobs need",
        flags: [.toggle("exact", help: "Count all, not only up to 10,000."), Setting.encryptionKeys.flag],
        examples: [Example("millrace keys list", "may the old key go?")]
    ) { invocation in
        let isExact = invocation.parsed.isOn("exact")
        let needed = try await invocation.withSchema { connection in
            try await Queue.sealedKeys(
                cap: isExact ? nil : SealedKey.cap, on: connection, deadline: isExact ? .seconds(600) : nil)
        }
        let keys = invocation.settings.keys.keys.map(\.id)
        let idle = keys.filter { id in !needed.contains { $0.id == id } }.map { SealedKey(id: $0, living: 0, ended: 0) }
        let all = (needed + idle).sorted { $0.id < $1.id }
        invocation.console.list(
            "keys", all.map { $0.json(among: keys) }, table: SealedKey.table(all, among: keys, cap: !isExact))
        return .done
    }

    static let keysRotate = Command(
        ["keys", "rotate"],
        summary: "Encrypt all arguments with the first key, so that older keys can go",
        discussion: """
            Every key that jobs need must be given here, and workers must have the new first key already: give it to \
            all of them after the old one, then put it first, then rotate, then remove the old one. Running workers \
            are not disturbed. You can stop this command and run it again at any time; it continues where it stopped. \
            Exit 1 when jobs are left under another key.
            """,
        flags: [
            .single(
                "batch", "N", .integer(1...500), environment: .none, fallback: "200",
                help: "How many jobs to change at once."),
            .toggle("dry-run", environment: .none, help: "Print the number of jobs, and change nothing."),
            Setting.encryptionKeys.flag,
        ],
        examples: [Example("MILLRACE_ENCRYPTION_KEY=new:…,old:… millrace keys rotate", "old to new")]
    ) { invocation in
        let keys = try invocation.neededKeys()
        return try await invocation.withSchema { connection in
            try await Rotation(keys: keys, invocation: invocation).run(on: connection)
        }
    }
}

/// Which key encrypts how many jobs, for machines and for people.
extension SealedKey {
    static let cap = 10_000

    var json: JSONValue { ["id": .string(id), "waiting": .int(living), "ended": .int(ended)] }

    func json(among keys: [String]) -> JSONValue {
        [
            "id": .string(id), "use": .string(use(among: keys)), "waiting": .int(living), "ended": .int(ended),
        ]
    }

    private func use(among keys: [String]) -> String {
        keys.first == id ? "encrypts" : keys.contains(id) ? "decrypts" : "missing"
    }

    static func counted(_ count: Int, _ noun: String) -> String {
        count >= cap ? "10,000+ \(noun)s" : Humane.count(count, noun)
    }

    /// `k1 3 waiting, 20 ended`
    var summary: String {
        var words = [id]
        if living > 0 { words.append("\(Humane.count(living)) waiting") }
        if ended > 0 { words.append("\(Humane.count(ended)) ended") }
        return words.joined(separator: " ")
    }

    static func table(_ all: [SealedKey], among keys: [String], cap isCapped: Bool) -> Table {
        var table = Table(
            [
                Table.Column("key", shrinks: true), Table.Column("here"), Table.Column("waiting", .trailing),
                Table.Column("ended", .trailing),
            ], whenEmpty: "no keys here, and no encrypted jobs")
        func count(_ number: Int) -> String {
            isCapped && number >= cap ? "10,000+" : Humane.count(number)
        }
        for key in all {
            let use = key.use(among: keys)
            table.add([
                Table.Cell(key.id, .bold), Table.Cell(use, use == "missing" ? .red : .plain),
                Table.Cell(count(key.living)), Table.Cell(count(key.ended)),
            ])
        }
        return table
    }
}
