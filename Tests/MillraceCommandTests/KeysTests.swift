import Encryption
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

private let one = Key(id: "one", bytes: [UInt8](repeating: 1, count: 32)).spelled
private let two = Key(id: "two", bytes: [UInt8](repeating: 2, count: 32)).spelled

/// A command at a database with some keys.
private func run(_ words: String..., at url: String, keys: String?, files: [String: String] = [:]) async -> Outcome {
    let capture = Capture()
    var environment = ["DATABASE_URL": url]
    environment["MILLRACE_ENCRYPTION_KEY"] = keys
    let code = await Application.run(
        arguments: words, surroundings: .fake(environment, files: files), console: capture.console)
    return Outcome(code: code, output: capture.output, errors: capture.errors)
}

@Suite struct KeysTests {
    @Test func `a generated key can be used as it is printed`() async throws {
        let named = await millrace("keys", "generate", "--id", "y2030")
        #expect(named.code == .done && named.output.hasPrefix("y2030:"))
        let key = String(named.output.dropLast())
        let config = await millrace("config", "--json", environment: ["MILLRACE_ENCRYPTION_KEY": key])
        #expect(config.code == .done)
        #expect(!config.output.contains(key.dropFirst(6)), "a key is a secret")
        let bare = try JSONValue.read(await millrace("keys", "generate", "--json").output)
        #expect(bare["id"]?.text?.count == 8 && bare["version"]?.integer == 1)
        #expect(try Keyring(bare["key"]?.text ?? "").keys.map(\.id) == [bare["id"]?.text])
        #expect(await millrace("keys", "generate", "--id", "no space").code == .misused)
    }

    @Test func `keys that cannot be used are an error of the settings, and are not repeated`() async throws {
        let outcome = await millrace(
            "status", environment: ["MILLRACE_ENCRYPTION_KEY": "k:c2VjcmV0", "DATABASE_URL": "postgres://x/y"])
        #expect(outcome.code == .misused)
        #expect(outcome.errors.contains("MILLRACE_ENCRYPTION_KEY cannot be used: the key is not base64 of 32 bytes"))
        #expect(!outcome.errors.contains("c2VjcmV0"))
    }

    @Test func `encrypted arguments are shown in the clear only to who has the key and asks`() async throws {
        try await withDatabase { database in
            let url = database.url
            let id = String(
                await run("enqueue", "practice.echo", #"{"card": "4111"}"#, "--encrypt", at: url, keys: one).output
                    .dropLast())
            let sealed = await run("jobs", "show", id, at: url, keys: one)
            #expect(sealed.code == .done && !sealed.output.contains("4111") && sealed.output.contains("\"one\""))
            let open = await run("jobs", "show", id, "--decrypt", "--json", at: url, keys: "\(two),\(one)")
            #expect(try JSONValue.read(open.output)["args"]?["card"]?.text == "4111")
            let none = await run("jobs", "show", id, "--decrypt", at: url, keys: nil)
            #expect(none.code == .misused && none.errors.contains("MILLRACE_ENCRYPTION_KEY"))
            let other = await run("jobs", "show", id, "--decrypt", at: url, keys: two)
            #expect(other.code == .failed && other.errors.contains("key one"))
            #expect(await run("enqueue", "practice.echo", "--encrypt", at: url, keys: nil).code == .misused)
            try await withWorker(at: url, keys: try Keyring(one)) {
                #expect(await run("jobs", "watch", id, at: url, keys: nil).code == .done)
            }
        }
    }

    @Test func `a batch is encrypted line by line, numbers to the last digit`() async throws {
        try await withDatabase { database in
            let lines = """
                {"kind": "a", "args": {"n": 12345678901234567890.5}}
                {"kind": "b", "tags": ["x"]}
                """
            let files = ["/jobs": lines]
            let outcome = await run(
                "enqueue", "--batch", "/jobs", "--encrypt", at: database.url, keys: one, files: files)
            #expect(outcome.code == .done, "\(outcome.errors)")
            let connection = try await database.connect()
            let rows = try await connection.column("select args from millrace.job order by id")
            let ring = try Keyring(one)
            #expect(rows.count == 2)
            #expect(
                try ring.open(Array(rows[0].utf8), kind: "a") == Array(#"{"n":12345678901234567890.5}"#.utf8))
            #expect(try ring.open(Array(rows[1].utf8), kind: "b") == Array("{}".utf8))
            #expect(try await connection.column("select tags from millrace.job where tags is not null") == ["{x}"])
            await connection.close()
        }
    }

    @Test func `doctor, status and keys list tell which keys jobs need`() async throws {
        try await withDatabase { database in
            let url = database.url
            _ = await run("enqueue", "a", "--encrypt", at: url, keys: one)
            let list = await run("keys", "list", "--json", at: url, keys: two)
            let keys = try #require(try JSONValue.read(list.output)["keys"])
            #expect(
                keys == [
                    ["id": "one", "use": "missing", "waiting": .number("1"), "ended": .number("0")],
                    ["id": "two", "use": "encrypts", "waiting": .number("0"), "ended": .number("0")],
                ])
            let sick = await run("doctor", at: url, keys: two)
            #expect(sick.code == .critical && sick.output.contains("not in this environment: key one (1 waiting job)"))
            #expect(await run("doctor", at: url, keys: nil).output.contains("not in this environment: key one"))
            #expect(
                await run("doctor", at: url, keys: "\(two),\(one)").output.contains("every key that jobs need is here"))
            #expect(await run("status", at: url, keys: nil).output.contains("encrypted jobs by key: one 1 waiting"))
        }
    }

    /// 1. Jobs wait, run and have ended under the old key. 2. A rotation encrypts them all again while a worker goes on. 3. The old key is
    /// removed.
    @Test func `keys are rotated under a running worker, and the old one can go`() async throws {
        try await withDatabase { database in
            let url = database.url
            let connection = try await database.connect()
            let ring = try Keyring(one)
            let sleeping = String(
                decoding: try ring.seal(Array(#"{"ms": 5}"#.utf8), kind: "practice.sleep"), as: UTF8.self)
            try await connection.run(
                """
                select millrace.enqueue_bulk('practice.sleep', array_fill('\(sleeping)'::text, array[600]));
                select millrace.enqueue_bulk('practice.sleep', array_fill('\(sleeping)'::text, array[50]), the_run_at => now() + interval '1 day')
                """)
            try await withWorker(at: url, keys: try Keyring("\(one),\(two)")) {
                try await eventually("some have ended") {
                    try await connection.int("select count(*) from millrace.history where outcome = 1") > 20
                }
                #expect(
                    await run("keys", "rotate", "--dry-run", at: url, keys: "\(two),\(one)").output
                        == "would encrypt 650 jobs with key two\n")
                let outcome = await run("keys", "rotate", "--batch", "100", "--json", at: url, keys: "\(two),\(one)")
                #expect(outcome.code == .done, "\(outcome.errors)")
                #expect(try JSONValue.read(outcome.output)["changed"]?.integer == 650)
                try await eventually("all that are due have ended well") {
                    try await connection.int("select count(*) from millrace.history where outcome = 1") == 600
                }
            }
            #expect(
                try await connection.int(
                    "select count(*) from millrace.history where outcome <> 1 and error is not null") == 0)
            let again = await run("keys", "rotate", "--json", at: url, keys: two)
            #expect(again.code == .done)
            #expect(try JSONValue.read(again.output)["changed"]?.integer == 0)
            try await connection.run("select millrace.retry(id) from millrace.job where run_at > now()")
            try await withWorker(at: url, keys: try Keyring(two)) {
                try await eventually("the rest has ended well") {
                    try await connection.int("select count(*) from millrace.history where outcome = 1") == 650
                }
            }
            await connection.close()
        }
    }

    @Test func `what cannot be rotated is counted with its reason, and the exit code says so`() async throws {
        try await withDatabase { database in
            let url = database.url
            let third = Key(id: "three", bytes: [UInt8](repeating: 3, count: 32)).spelled
            _ = await run("enqueue", "a", "--encrypt", at: url, keys: one)
            _ = await run("enqueue", "a", "--encrypt", at: url, keys: third)
            _ = await run("enqueue", "a", "--unique", "k", "--encrypt", at: url, keys: one)
            let holder = try await database.connect()
            try await holder.run(
                "begin; select millrace.enqueue('a', unique_key => 'k', on_conflict => 'replace')")
            let outcome = await run("keys", "rotate", at: url, keys: "\(two),\(one)")
            #expect(outcome.code == .failed)
            #expect(outcome.output == "1 job encrypted with key two\n")
            #expect(outcome.errors.contains("1 job could not be opened: the arguments are encrypted with key three"))
            #expect(outcome.errors.contains("in use by open transactions: run this again"))
            try await holder.run("rollback")
            await holder.close()
            #expect(await run("keys", "rotate", at: url, keys: "\(two),\(one),\(third)").code == .done)
            #expect(await run("keys", "rotate", at: url, keys: nil).code == .misused)
        }
    }
}
