import Foundation
import Listeners
import Postgres
import Signatures
import TestSupport
import Testing

@testable import Console

/// Requests that no page of ours sends.
@Suite(.timeLimit(.minutes(10))) struct AttackTests {
    static let key = Array("a key of thirty-two bytes for tests".utf8)
    static let line =
        "ada:operator:scrypt$15$8$1$c2l4dGVlbiBieXRlIHNhbA$z0pmNxikajRIQDgJ5vvdUpH5peTztLqEz249ZD_EPd0"
    static let password = "correct horse battery"

    private static func users(_ lines: String = line) throws -> ConsoleUsers { try ConsoleUsers(parsing: lines) }

    /// Every address that a visitor can ask for, with numbers that need not be there.
    private var addresses: [String] {
        (ConsolePages.all.map(\.path) + ConsolePages.files.map(\.path) + ["/live"]).map {
            "/console" + $0.replacing("{id}", with: Seed.document)
        }
    }

    @Test func `without a token, or with a wrong one, no page and no action is answered`() async throws {
        try await ConsoleWorld.with({
            $0.access = ConsoleAccess(key: Self.key, token: "a-token-of-ours-1234")
            $0.addition = nil
        }) { world in
            let bearer = { (text: String) in [("Authorization", "Bearer \(text)")] }
            for address in addresses {
                let none = try await world.get(address)
                #expect(none.status == (address.hasSuffix("/live") ? 401 : 303), "\(address)")
                #expect(none.body.isEmpty || address.hasSuffix("/live"), "\(address)")
                let wrong = try await world.get(address, bearer("a-token-of-ours-1235"))
                #expect(wrong.status == 401, "\(address)")
                for secret in ["report", "Overview</h1>", "data:"] { #expect(!wrong.body.contains(secret)) }
            }
            #expect(try await world.get("/console", bearer("a-token-of-ours-1234")).status == 200)
            #expect(try await world.get("/console", bearer("")).status == 401)
            #expect(try await world.get("/console", [("Authorization", "Basic YTpi")]).status == 303)
            for action in ConsoleAction.all {
                let answer = try await world.post("/console/act/\(action.name)", [("id", "1")])
                #expect(answer.status == 303 && answer.header("Location")?.hasPrefix("/console/signin") == true)
                #expect(
                    try await world.post("/console/act/\(action.name)", [("id", "1")], bearer("wrong-wrong-wrong-"))
                        .status
                        == 401)
            }
        }
    }

    @Test func `under another name nothing is answered where nobody signs in`() async throws {
        let hosts = [
            "evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "",
            "localhost@evil.example", "user@localhost", "[::1", "0.0.0.0", "2130706433",
        ]
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            for host in hosts {
                let answer = try await RawAnswer.get("/console", host: host, port: world.port)
                #expect([400, 403].contains(answer.status), "\(host): \(answer.status)")
                #expect(!answer.body.contains("<nav"), "\(host)")
            }
        }
    }

    @Test func `another page's forms are refused, whatever they bring`() async throws {
        try await ConsoleWorld.with { world in
            let token = try await world.formToken()
            let form = [("queue", "reports"), ("form_token", token)]
            func refused(
                _ form: [(String, String)], _ headers: [(String, String)], _ what: String
            ) async throws {
                let answer = try await world.post("/console/act/queue.pause", form, headers)
                #expect(answer.status == 403, "\(what): \(answer.status) \(answer.body)")
            }
            try await refused(form, [("Origin", "https://evil.example")], "another origin")
            try await refused(form, [("Origin", "null")], "no origin")
            try await refused(form, [("Origin", "http://127.0.0.1:1")], "another port")
            try await refused(form, [("Sec-Fetch-Site", "cross-site")], "cross-site")
            try await refused(form, [("Sec-Fetch-Site", "same-site")], "same-site")
            try await refused([("queue", "reports")], [("Origin", world.origin)], "without a form token")
            try await refused(
                [("queue", "reports"), ("form_token", "")], [("Origin", world.origin)], "with an empty one")
            try await refused(
                [("queue", "reports"), ("form_token", String(token.dropLast()) + "A")], [("Origin", world.origin)],
                "with a wrong one")
            let other = ConsoleAccess(key: Self.key, token: "x").formToken(of: Visitor(name: "eve", role: .admin))
            try await refused([("queue", "reports"), ("form_token", other)], [], "with another visitor's")
            for line in ["GET /console/act/queue.pause?queue=reports&form_token=\(token) HTTP/1.1"] {
                #expect([404, 405].contains(try await RawAnswer.ask(line, host: world.host, port: world.port).status))
            }
            #expect(
                try await !world.connection.bool(
                    "select exists (select from millrace.queue where name = 'reports' and paused_at is not null)"))
            let good = try await world.post(
                "/console/act/queue.pause", form, [("Origin", world.origin), ("Sec-Fetch-Site", "same-origin")])
            #expect(good.status == 303)
        }
    }

    @Test func `a session cookie that is forged, altered, over, or of a user who has changed opens nothing`()
        async throws
    {
        try await ConsoleWorld.with({
            $0.access = ConsoleAccess(key: Self.key, users: try Self.users())
            $0.addition = nil
        }) { world in
            let set = try await world.post("/console/signin", [("name", "ada"), ("secret", Self.password)])
            let whole = try #require(set.header("Set-Cookie"))
            #expect(whole.contains("HttpOnly") && whole.contains("SameSite=Strict") && whole.contains("Path=/console"))
            #expect(!whole.contains("Secure"))
            let secure = try await world.post(
                "/console/signin", [("name", "ada"), ("secret", Self.password)], [("X-Forwarded-Proto", "https")])
            #expect(secure.header("Set-Cookie")?.hasSuffix("; Secure") == true)
            let cookie = String(whole.prefix { $0 != ";" })
            func status(_ cookie: String) async throws -> Int {
                try await world.get("/console/queues", [("Cookie", cookie)]).status
            }
            #expect(try await status(cookie) == 200)
            #expect(try await status("a=b; \(cookie); c=d") == 200)
            let value = String(cookie.drop { $0 != "=" }.dropFirst())
            for place in stride(from: 0, to: value.utf8.count, by: 9) {
                var bytes = Array(value.utf8)
                bytes[place] = bytes[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
                #expect(try await status("millrace_console=" + String(decoding: bytes, as: UTF8.self)) == 303)
            }
            let (now, mark) = (Int(Date().timeIntervalSince1970), try Self.users().users["ada"]?.mark ?? "")
            let ours = SessionCookie(key: Self.key)
            func made(_ content: SessionCookie.Content, by cookies: SessionCookie = ours) -> String {
                "millrace_console=" + cookies.text(content)
            }
            let right = SessionCookie.Content(name: "ada", role: .operator, until: now + 60, mark: mark)
            #expect(try await status(made(right)) == 200)
            #expect(try await status(made(right, by: SessionCookie(key: Array("another key".utf8)))) == 303)
            var over = right
            over.until = now - 1
            #expect(try await status(made(over)) == 303)
            var higher = right
            higher.role = .admin
            #expect(try await status(made(higher)) == 303, "the role of the file counts")
            var removed = right
            removed.name = "bob"
            #expect(try await status(made(removed)) == 303)
            var before = right
            before.mark = "of an earlier password"
            #expect(try await status(made(before)) == 303)
            for text in ["", ".", "..", "a.b", "%00", String(repeating: "A", count: 3000)] {
                #expect(try await status("millrace_console=\(text)") == 303)
            }
        }
    }

    @Test func `a session of the token ends when the token or its role changes`() async throws {
        func cookie(_ access: ConsoleAccess) throws -> String {
            try #require(access.signIn(name: "", secret: "a-token-of-ours-1234"))
        }
        let access = ConsoleAccess(key: Self.key, token: "a-token-of-ours-1234")
        let text = try cookie(access)
        func opens(_ access: ConsoleAccess) async throws -> Bool {
            let outcome = Locked(false)
            try await ConsoleWorld.with({
                $0.access = access
                $0.addition = nil
            }) { world in
                let answer = try await world.get("/console/queues", [("Cookie", "millrace_console=\(text)")])
                outcome.withLock { $0 = answer.status == 200 }
            }
            return outcome.value
        }
        #expect(try await opens(access))
        #expect(try await !opens(ConsoleAccess(key: Self.key, token: "another-token-of-ours")))
        var lower = access
        lower.localRole = .viewer
        #expect(try await !opens(lower))
    }

    @Test func `guessing is slowed down, many at once too, and the one who knows the password is not counted`()
        async throws
    {
        try await ConsoleWorld.with({
            $0.access = ConsoleAccess(key: Self.key, users: try Self.users())
            $0.addition = nil
        }) { world in
            for _ in 0..<3 {
                _ = try await world.cookie("ada", Self.password)
            }
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for guess in 0..<30 {
                    group.addTask {
                        let name = guess % 2 == 0 ? "ada" : "nobody"
                        return try await world.post("/console/signin", [("name", name), ("secret", "guess \(guess)")])
                            .status
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses.count { $0 == 401 } == 10 && statuses.count { $0 == 429 } == 20, "\(statuses)")
            let began = ContinuousClock.now
            let late = try await world.post("/console/signin", [("name", "ada"), ("secret", Self.password)])
            // Who is refused at once would ask again at once.
            #expect(began.duration(to: .now) >= .milliseconds(200))
            #expect(late.status == 429 && late.header("Retry-After") == "60" && late.body.contains("too many"))
        }
    }

    @Test func `wrong passwords lock out an address and a name, and no user where it has signed in before`() async {
        let limit = SignInLimit()
        let now = ContinuousClock.now
        func tries(_ count: Int, of name: String?, from address: String) async {
            for _ in 0..<count { #expect(await limit.begins(name, from: address, at: now)) }
        }
        #expect(await limit.begins("ada", from: "home", at: now))
        await limit.succeeded("ada", from: "home")
        // Ten of whatever names from one address.
        await tries(5, of: "nobody", from: "there")
        await tries(5, of: nil, from: "there")
        #expect(await !limit.begins("bob", from: "there", at: now))
        await tries(1, of: "bob", from: "elsewhere")
        // Ten of one name from ten addresses.
        for place in 0..<10 { await tries(1, of: "ada", from: "place \(place)") }
        #expect(await !limit.begins("ada", from: "another place", at: now))
        await tries(9, of: "ada", from: "home")
        await limit.succeeded("ada", from: "home")
        await tries(1, of: "bob", from: "another place")
        // A minute later all is forgotten.
        #expect(await limit.begins("ada", from: "another place", at: now + .seconds(61)))
        #expect(await limit.begins("bob", from: "there", at: now + .seconds(61)))
    }

    @Test func `behind a proxy an address locks out itself, and what its client says of it counts for nothing`()
        async throws
    {
        try await ConsoleWorld.with({
            $0.access = ConsoleAccess(key: Self.key, users: try Self.users())
            $0.addition = nil
        }) { world in
            func signIn(_ name: String, _ secret: String, _ chain: String) async throws -> Int {
                try await world.post(
                    "/console/signin", [("name", name), ("secret", secret)], [("X-Forwarded-For", chain)]
                ).status
            }
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for guess in 0..<15 {
                    group.addTask {
                        try await signIn("n\(guess)", "guess", "192.0.2.\(guess), 2001:db8:1:1::\(guess)")
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses.count { $0 == 401 } == 10 && statuses.count { $0 == 429 } == 5, "\(statuses)")
            #expect(try await signIn("ada", Self.password, "2001:db8:1:1::aaaa") == 429, "one network is one client")
            #expect(try await signIn("ada", Self.password, "2001:db8:1:2::1") == 303)
        }
    }

    @Test func `where nobody signs in, what a proxy passes on is not answered`() async throws {
        let names = [
            "X-Forwarded-For", "X-Forwarded-Proto", "x-forwarded-host", "Forwarded", "Via", "X-Real-IP",
            "CF-Connecting-IP", "True-Client-IP", "X-Amzn-Trace-Id", "X-Original-URL",
        ]
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            let token = try await world.formToken()
            for name in names {
                let headers = [(name, "198.51.100.1")]
                for address in ["/console", "/console/jobs", "/console/live", "/console/signin"] {
                    let answer = try await world.get(address, headers)
                    #expect(
                        answer.status != 200 && !answer.body.contains("<nav"), "\(name) \(address): \(answer.status)")
                }
                let page = try await world.get("/console", headers)
                #expect(page.status == 403 && page.body.contains("MILLRACE_CONSOLE_USERS_FILE"), "\(name) \(page.body)")
                let act = try await world.post(
                    "/console/act/queue.pause", [("queue", "default"), ("form_token", token)], headers)
                #expect(act.status == 403, "\(name)")
            }
        }
        // Who signs in may come through a proxy.
        try await ConsoleWorld.with({
            $0.access = ConsoleAccess(key: Self.key, token: "a-token-of-ours-1234")
            $0.addition = nil
        }) { world in
            for name in names {
                let headers = [("Authorization", "Bearer a-token-of-ours-1234"), (name, "198.51.100.1")]
                let answer = try await world.get("/console", headers)
                #expect(answer.status == 200, "\(name)")
            }
        }
    }

    @Test
    func `a cookie that was signed out is worth nothing, at every console of the database, and its live pages end`()
        async throws
    {
        try await ConsoleWorld.with({
            $0.access = ConsoleAccess(key: Self.key, users: try Self.users())
            $0.addition = nil
        }) { world in
            var setup = ConsoleWorld.Setup()
            setup.access = ConsoleAccess(key: Self.key, users: try Self.users())
            try await ConsoleWorld.serve(world.database, world.connection, setup, world.roles) { second in
                let (stolen, kept) = (
                    try await world.cookie("ada", Self.password), try await world.cookie("ada", Self.password)
                )
                #expect(stolen != kept)
                func status(_ cookie: String, at console: ConsoleWorld) async throws -> Int {
                    try await console.get("/console/queues", [("Cookie", cookie)]).status
                }
                for console in [world, second] { #expect(try await status(stolen, at: console) == 200) }
                let live = try EventReader(world, cookie: stolen)
                #expect(await live.next()?.name == "look")
                let token = try await world.formToken([("Cookie", stolen)])
                let out = try await world.post("/console/signout", [("form_token", token)], [("Cookie", stolen)])
                #expect(out.status == 303 && out.header("Set-Cookie")?.contains("Max-Age=0") == true)
                #expect(try await status(stolen, at: world) == 303)
                #expect(try await world.get("/console/live", [("Cookie", stolen)]).status == 401)
                let act = try await world.post(
                    "/console/act/queue.pause", [("queue", "default"), ("form_token", token)], [("Cookie", stolen)])
                #expect(act.status == 303 && act.header("Location")?.hasPrefix("/console/signin") == true)
                try await eventually("the other console knows it") { try await status(stolen, at: second) == 303 }
                while await live.next() != nil {}
                // Another session of the same user goes on.
                for console in [world, second] { #expect(try await status(kept, at: console) == 200) }
            }
            // A console that starts again knows it, too.
            let marks = try await world.connection.int("select count(*) from millrace.console_signed_out")
            #expect(marks == 1)
        }
    }

    @Test func `one visitor's pages and live pages leave room for the others`() async throws {
        let bob = Self.line.replacing("ada:operator:", with: "bob:viewer:")
        try await ConsoleWorld.with({
            $0.access = ConsoleAccess(key: Self.key, users: try Self.users(Self.line + "\n" + bob))
            $0.addition = nil
            $0.livePagesOfVisitor = 3
        }) { world in
            let ada = [("Cookie", try await world.cookie("ada", Self.password))]
            let bobs = [("Cookie", try await world.cookie("bob", Self.password))]
            // The page of quests stands still for everybody, and ada asks for it again and again.
            let holder = try await world.database.connect("holder")
            try await holder.run("begin; lock table millrace.quest_family in access exclusive mode")
            func waiting() async throws -> Int {
                try await world.connection.int(
                    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
                )
            }
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<30 { group.addTask { try await world.get("/console/quests", ada).status } }
                try await eventually("she has her share") { try await waiting() == 1 }
                for _ in 0..<3 {
                    #expect(try await world.get("/console/queues", bobs).status == 200)
                    #expect(try await waiting() <= 1)
                }
                try await holder.run("rollback")
                return try await group.reduce(into: []) { $0.append($1) }
            }
            // Some may have used up their time, none has used up bob's.
            #expect(statuses.allSatisfy { [200, 429, 503].contains($0) }, "\(statuses)")
            await holder.close()
            let readers = try (0..<3).map { _ in try EventReader(world, cookie: ada[0].1) }
            for reader in readers { #expect(await reader.next()?.name == "look") }
            let fourth = try await world.get("/console/live", ada)
            #expect(fourth.status == 429 && fourth.header("Retry-After") != nil)
            #expect(await (try EventReader(world, cookie: bobs[0].1)).next()?.name == "look")
            withExtendedLifetime(readers) {}
        }
    }

    @Test func `the sign-in sends nobody elsewhere, and says the same of a wrong name and a wrong password`()
        async throws
    {
        try await ConsoleWorld.with({
            $0.access = ConsoleAccess(key: Self.key, users: try Self.users())
            $0.addition = nil
        }) { world in
            for to in [
                "https://evil.example/", "//evil.example/", "/\\evil.example", "/consoles", "/console\\@evil.example",
                "javascript:x",
                "/console\r\nSet-Cookie: a=b", "/", "", "console", "/console/\u{7F}",
            ] {
                let answer = try await world.post(
                    "/console/signin", [("name", "ada"), ("secret", Self.password), ("to", to)])
                #expect(answer.status == 303 && answer.header("Location") == "/console", "\(to): \(answer.head)")
            }
            let kept = try await world.post(
                "/console/signin", [("name", "ada"), ("secret", Self.password), ("to", "/console/jobs?state=dead")])
            #expect(kept.header("Location") == "/console/jobs?state=dead")
            let asked = try await world.get("/console/jobs?state=dead&tag=a%26b")
            #expect(asked.header("Location") == "/console/signin?back=%2Fconsole%2Fjobs%3Fstate%3Ddead%26tag%3Da%2526b")
            let form = try await world.get("/console/signin?back=%22%3E%3Cscript%3Ehacked%3D1%3C%2Fscript%3E")
            #expect(form.status == 200 && !form.body.contains("<script>hacked"))
            let one = try await world.post("/console/signin", [("name", "ada"), ("secret", "x")])
            let two = try await world.post("/console/signin", [("name", "eve"), ("secret", "x")])
            #expect(one.status == 401 && one.body == two.body)
        }
    }
}
