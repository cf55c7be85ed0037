import MillraceQueues
import Postgres
import TestSupport

/// A database with something of everybody's in it, and the roles to ask for it.
struct DoorWorld {
    enum Object { case own, others, absent }

    let database: TestDatabase
    let owner: Connection
    let names: RoleNames
    let gateway: String
    let anon: String
    let signedIn: String
    let backend: String
    /// A back end's role behind a gateway such as PostgREST, as Supabase has it.
    let service: String
    let other: String

    static let nowhere = "00000000-0000-4000-8000-000000000000"

    /// What the tests share: nobody may change who is a member of which.
    private static let shared = Roles()
    private static let template = Template.empty.adding("doors") { database in
        let office = try await TestCluster.office()
        try await shared.create(office)
        try await office.run("alter database \(database.name) owner to \(shared.names.owner)")
        await office.close()
        let world = try await DoorWorld(database, shared)
        try await world.migrate()
        await world.owner.close()
    }

    private struct Roles {
        let names = RoleNames()
        let gateway = TestCluster.name("gateway")
        let anon = TestCluster.name("anon")
        let signedIn = TestCluster.name("user")
        let backend = TestCluster.name("backend")
        let service = TestCluster.name("service")
        let other = TestCluster.name("other")

        func create(_ office: Connection) async throws {
            for role in names.all { try await office.run("create role \(role) login") }
            try await office.run(
                """
                create role \(gateway) login noinherit; create role \(anon); create role \(signedIn);
                create role \(service); create role \(backend) login; create role \(other) login;
                grant \(anon), \(signedIn), \(service) to \(gateway);
                grant \(names.client) to \(anon), \(signedIn), \(backend), \(service), \(other), \(names.attacker)
                """)
        }

        func drop(_ office: Connection) async throws {
            for role in [gateway, anon, signedIn, backend, service, other] + names.all.reversed() {
                try await office.run("drop owned by \(role); drop role \(role)")
            }
        }
    }

    private init(_ database: TestDatabase, _ roles: Roles) async throws {
        self.database = database
        owner = try await database.connect(as: roles.names.owner)
        (names, gateway, anon) = (roles.names, roles.gateway, roles.anon)
        (signedIn, backend, other) = (roles.signedIn, roles.backend, roles.other)
        service = roles.service
    }

    static func with(_ body: (DoorWorld) async throws -> Void) async throws {
        try await withDatabase(template, owner: shared.names.owner) { database in
            let world = try await DoorWorld(database, shared)
            try await body(world)
            await world.owner.close()
        }
    }

    /// With roles of the test's own, which it may grant to each other.
    static func withOwnRoles(_ body: (DoorWorld) async throws -> Void) async throws {
        let office = try await TestCluster.office()
        let roles = Roles()
        try await roles.create(office)
        try await withDatabase(.empty, owner: roles.names.owner) { database in
            let world = try await DoorWorld(database, roles)
            try await world.migrate()
            try await body(world)
            await world.owner.close()
        }
        try await roles.drop(office)
        await office.close()
    }

    private func migrate() async throws {
        _ = try await names.migrator(testClock: true).migrate(on: owner)
        try await fill()
    }

    private func fill() async throws {
        for role in [anon, signedIn, backend, service, other, names.attacker] {
            for kind in [
                "mine", "mail.send", "mail.password_reset", "mail.account_verification", "mail.welcome",
                "mail.account_notification", "document.receive", "template.render", "media.process",
            ] {
                try await owner.run("select millrace.grant_enqueue('\(role)', '\(kind)')")
            }
            try await owner.run("select millrace.grant_publish('\(role)', 'com.example.mine')")
        }
        try await owner.run(
            """
            select millrace.grant_backend('\(backend)'), millrace.grant_backend('\(service)'), millrace.trust_claims('\(gateway)'), millrace.subscription_plan_set('pro', '{}');
            select millrace.family_create('fam-a', 'UTC'), millrace.family_create('fam-b', 'UTC');
            select millrace.family_join('fam-a', 'alice', 'parent'), millrace.family_join('fam-b', 'bob', 'parent');
            select millrace.mood_log(p, 'happy', actor => p) from unnest(array['alice', 'bob']) p;
            select millrace.device_add(p, 'fcm', 'token-of-' || p, actor => p) from unnest(array['alice', 'bob']) p;
            select millrace.blob_put(sha256('x'), 'x');
            select millrace.blob_allow(sha256('x'), r, t)
              from unnest(array['\(anon)', '\(signedIn)', '\(backend)', '\(service)', '\(other)', '\(names.attacker)']) r, unnest(array[null, 'person:alice', 'person:bob']) t;
            select millrace.chat_thread_create(actor => p) from unnest(array['alice', 'bob']) p;
            select millrace.chat_send(t.id, 'hello', format('[{"storage_url": "blob:%s", "mime_type": "image/png"}]', encode(sha256('x'), 'hex'))::jsonb, actor => t.created_by)
              from millrace.chat_thread t;
            create table public.made (role text, person text, what text, id text);
            grant all on public.made to public
            """)
        for (role, claims) in Self.makers(self) {
            for person in ["alice", "bob"] {
                let caller = try await caller(role)
                if claims {
                    try await caller.connection.run(
                        "select set_config('request.jwt.claims', '{\"sub\": \"\(person)\"}', false)")
                }
                try await caller.connection.run(
                    """
                    insert into public.made select '\(role)', '\(person)', 'job', millrace.enqueue('mine')::text;
                    insert into public.made select '\(role)', '\(person)', 'mail', millrace.mail_send(array['a@b.example'], 's', 't')::text
                    """)
                if !["anon", "no claims", "client"].contains(role) {
                    try await caller.connection.run(
                        """
                        insert into public.made select '\(role)', '\(person)', 'document',
                            millrace.document_register('https://a.example/x', actor => '\(person)')::text;
                        insert into public.made select '\(role)', '\(person)', 'lesson', l.id
                          from (select replace('lesson-\(role)-\(person)', ' ', '-') as id) l where millrace.lesson_put(l.id, actor => '\(person)') = 'created';
                        insert into public.made select '\(role)', '\(person)', 'media',
                            millrace.media_process('blob:' || encode(sha256('x'), 'hex'), '{"strip": true}', actor => '\(person)')::text
                        """)
                }
                await caller.connection.close()
            }
        }
    }

    private static func makers(_ world: DoorWorld) -> [(String, Bool)] {
        [
            ("anon", false), ("signed in", true), ("no claims", false), ("client", false), ("back end", false),
            ("service role", false), ("worker", false), ("admin", false), ("owner", false),
        ]
    }

    func caller(_ role: String) async throws -> DoorCaller {
        let login: String
        var setting = ""
        switch role {
        case "none": login = names.stranger
        case "anon":
            login = gateway
            setting = "set role \(anon); select set_config('request.jwt.claims', '{\"role\": \"anon\"}', false)"
        case "signed in":
            login = gateway
            setting = "set role \(signedIn); select set_config('request.jwt.claims', '{\"sub\": \"alice\"}', false)"
        case "no claims":
            login = gateway
            setting = "set role \(signedIn)"
        case "client": login = names.attacker
        case "back end": login = backend
        case "service role":
            login = gateway
            setting =
                "set role \(service); select set_config('request.jwt.claims', '{\"iss\": \"supabase\", \"role\": \"\(service)\"}', false)"
        case "worker": login = names.worker
        case "admin": login = names.admin
        default: login = names.owner
        }
        let connection = try await database.connect(as: login)
        if !setting.isEmpty { try await connection.run(setting) }
        try await connection.run("set statement_timeout = '20s'")
        return DoorCaller(role: role, connection: connection)
    }

    /// The tokens of all jobs that wait, by their ids: a session of ours runs them.
    func claimed() async throws -> [Int: String] {
        let rows = try await owner.column(
            """
            select c.id || ' 4d-' || c.number || '-' || c.id from millrace.claim(77, (select 8 * (1 + count(*)) from millrace.lease), array(select id from millrace.kind),
                (select array_agg(q.id order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(l order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(0::bigint) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(9223372036854775807) from millrace.queue q, generate_series(0, 39) l),
                (select array_agg(500) from millrace.queue q, generate_series(0, 39) l), 500, '{}', '{}') c
             where c.number is not null
            """)
        return Dictionary(
            uniqueKeysWithValues: rows.compactMap { row in
                let parts = row.split(separator: " ")
                return Int(parts[0]).map { ($0, String(parts[1])) }
            })
    }

    /// A literal for the object of a call.
    func literal(_ about: String, _ object: Object, for role: String) async throws -> String {
        switch about {
        case "kind": ["'mine'", "'theirs'", "'nobodys'"][object.place]
        case "type": ["'com.example.mine'", "'com.example.theirs'", "'com.example.nobodys'"][object.place]
        case "person": ["'alice'", "'bob'", "'nobody'"][object.place]
        case "member", "family": ["'fam-a'", "'fam-b'", "'fam-x'"][object.place]
        case "token": ["'token-of-alice'", "'token-of-bob'", "'token-of-nobody'"][object.place]
        case "mood":
            object == .absent
                ? "'\(Self.nowhere)'::uuid"
                : "'\(try await owner.value("select id from millrace.mood where person = '\(object == .own ? "alice" : "bob")'") ?? "")'::uuid"
        case "thread", "message":
            object == .absent
                ? "'\(Self.nowhere)'::uuid"
                : "'\(try await owner.value("select id from millrace.chat_\(about) where \(about == "thread" ? "created_by" : "sender") = '\(object == .own ? "alice" : "bob")'") ?? "")'::uuid"
        case "job", "mail", "document", "lesson", "media":
            try await made(about, object, for: role)
        default: "null"
        }
    }

    /// For a signed-in role “another's” is another person's object under the same role; for a back end it is another role's.
    private func made(_ rule: String, _ object: Object, for role: String) async throws -> String {
        let type = ["job": "bigint", "lesson": "text"][rule] ?? "uuid"
        if object == .absent { return rule == "job" ? "999999999999" : "'\(Self.nowhere)'::\(type)" }
        let by =
            object == .own || role == "signed in"
            ? (role == "none" ? "client" : role) : role == "client" ? "back end" : "signed in"
        let person = object == .own ? "alice" : "bob"
        for (maker, whose) in [(by, person), ("signed in", "bob")] {
            let id = try await owner.value(
                "select id from public.made where role = '\(maker)' and person = '\(whose)' and what = '\(rule)'")
            if let id { return "'\(id)'::\(type)" }
        }
        return "null::\(type)"
    }
}

extension DoorWorld.Object {
    fileprivate var place: Int {
        switch self {
        case .own: 0
        case .others: 1
        case .absent: 2
        }
    }

    fileprivate var person: String { ["alice", "bob", "nobody"][place] }
}

/// One role's connection.
struct DoorCaller {
    struct Answer {
        /// What came back, without the object's own name.
        let text: String
        let sqlState: String?
        let detail: String

        var isClosed: Bool { sqlState == "42501" && !detail.hasPrefix("{") }
        var isRefused: Bool { sqlState == "42501" && detail.contains("\"permission\"") }
        /// An error says what kind it is.
        var isClassified: Bool { sqlState == nil || isClosed || detail.hasPrefix("{") }
    }

    let role: String
    let connection: Connection

    private var isStaff: Bool { ["worker", "admin", "owner"].contains(role) }

    func answer(_ door: DoorTable.Door, object: DoorWorld.Object, in world: DoorWorld) async throws -> Answer {
        let literal = try await world.literal(door.about, object, for: role)
        let named = "'\(object.person)'"
        let person =
            role == "signed in" ? (door.arguments.contains("{o}") || object == .own ? "null" : named) : named
        let arguments = door.arguments.replacing("{o}", with: literal).replacing("{person}", with: person)
            .replacing(
                "{actor}",
                with: isStaff && ["document", "lesson", "media"].contains(door.about) || role == "signed in"
                    ? "null" : "'alice'")
        let statement =
            "select coalesce(string_agg(t::text, ';'), '') from millrace.\(door.name)(\(arguments)) t"
        try await connection.run("begin")
        if door.name == "enqueue_copied" {
            try await connection.run("create temporary table millrace_batch (line bigint, job jsonb) on commit drop")
        }
        let answer: Answer
        let bare = literal.replacing("::uuid", with: "").replacing("::bigint", with: "").replacing("::text", with: "")
            .replacing("'", with: "")
        func plain(_ text: String) -> String { text.replacing(bare, with: "#") }
        if let error = try await connection.refusal(of: statement) {
            answer = Answer(
                text: plain("\(error.sqlState) \(error.message)"), sqlState: error.sqlState, detail: error.detail ?? "")
        } else {
            try await connection.run("rollback; begin")
            if door.name == "enqueue_copied" {
                try await connection.run(
                    "create temporary table millrace_batch (line bigint, job jsonb) on commit drop")
            }
            answer = Answer(text: plain(try await connection.value(statement) ?? ""), sqlState: nil, detail: "")
        }
        try await connection.run("rollback")
        return answer
    }

    /// The functions that Postgres lets the role run.
    func reachable() async throws -> Set<String> {
        try await Set(
            connection.column(
                """
                select p.proname from pg_proc p
                 where p.pronamespace = 'millrace'::regnamespace and has_schema_privilege('millrace', 'usage') and has_function_privilege(p.oid, 'execute')
                """))
    }
}
