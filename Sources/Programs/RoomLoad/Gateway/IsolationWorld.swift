import CommandKit
import LoadKit
import Postgres
import Threads

/// Real people at a real gateway: plants what is theirs, then lets each call.
struct IsolationWorld: Sendable {
    let people: IsolationPeople
    let ground: GatewayGround
    let port: UInt16
    private(set) var things: [IsolationThings] = []
    /// Names that are no door for apps.
    private(set) var closed: [String] = []

    init(_ people: IsolationPeople, _ ground: GatewayGround, port: UInt16) {
        (self.people, self.ground, self.port) = (people, ground, port)
    }

    // MARK: planting

    /// - Parameter connection: the schema's owner's.
    mutating func plant(on connection: Connection) async throws {
        try await grant(on: connection)
        closed = try await Self.closed(to: ground.role, on: connection)
        let world = self
        let users = Array(0..<people.count)
        let planted = await OnThreads.each(users, threads: 8) { user in
            world.plant(user, GatewayClient(port: world.port))
        }
        things = try planted.map { try $0.get() }
        // Contacts have agreed, so watches can be armed and a call for help reaches somebody.
        let called = await OnThreads.each(users, threads: 8) { user in
            world.agreeAndArm(user, GatewayClient(port: world.port))
        }
        for (user, result) in called.enumerated() { things[user].alarm = try result.get() }
        try await write(on: connection)
    }

    private func grant(on connection: Connection) async throws {
        try await connection.execute(
            """
            select millrace.grant_enqueue($1, 'isolation.job'), millrace.grant_enqueue($1, 'document.receive'),
                   millrace.grant_enqueue($1, 'mail.account_notification')
            """, [.text(ground.role)])
        for group in 0..<people.groups {
            let first = group * IsolationPeople.groupSize
            try await connection.execute("select millrace.family_create($1, 'UTC')", [.text(people.family(first))])
            for user in first..<min(first + IsolationPeople.familySize, people.count) {
                try await connection.execute(
                    "select millrace.family_join($1, $2, $3)",
                    [
                        .text(people.family(user)), .text(people.name(user)),
                        .text(user % IsolationPeople.groupSize < 2 ? "parent" : "teen"),
                    ])
            }
        }
    }

    /// All functions of the schema and of Postgres that are no doors for apps, and names that try to be something else.
    private static func closed(to role: String, on connection: Connection) async throws -> [String] {
        let names = try await connection.query(
            """
            select distinct p.proname::text from pg_proc p
             where p.pronamespace in ('millrace'::regnamespace, 'pg_catalog'::regnamespace)
               and p.proname not in (select d.name from millrace.gateway_doors($1) d)
             order by 1
            """, [.text(role)], deadline: .seconds(60)
        ) { row throws(PostgresError) in try row.string(0) }
        let tricks = [
            "Check_In", "check_in%20", "%20check_in", "check_in%00", "check_in%3B", "check_in()", "millrace.check_in",
            "%22check_in%22", "check_in%2F", "..%2Fcheck_in", "pg_catalog.pg_sleep", "check_in%27%20or%201", "",
            "%E2%80%8Bcheck_in",
            "gateway_doors", "gateway_begin", "gateway_end", "set_config", "pg_read_file", "lo_export",
        ]
        return names.map(escaped) + tricks
    }

    private static func escaped(_ name: String) -> String {
        name.utf8.map { byte in
            let isPlain = (byte | 0x20) &- 97 < 26 || byte &- 48 < 10 || byte == 0x5f
            return isPlain
                ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }

    /// What is a person's own, through the gateway with the person's token.
    private func plant(_ user: Int, _ client: GatewayClient) -> Result<IsolationThings, Failure> {
        var things = IsolationThings()
        var failure: Failure?
        let token = token(user)
        let name = JSONValue.string(people.name(user))
        func mark(_ kind: IsolationPeople.Kind) -> JSONValue { .string(people.mark(kind, user)) }
        func call(_ function: String, _ args: JSONValue) -> JSONValue? {
            let answer = client.call(function, args, token: token)
            if !answer.isGood, failure == nil {
                failure = Failure("\(function) of \(people.name(user)) answered \(answer.status): \(answer.text)")
            }
            return answer.json
        }
        for lesson in 1...2 {
            let document = call(
                "document_register",
                [
                    "storage_url": .string("https://files.example/\(people.mark(.document, user))/\(lesson).pdf"),
                    "title": mark(.document), "mime_type": "application/pdf", "size": 1000,
                    "lesson_id": .string("lesson-\(lesson)"),
                ])
            things.documents += [document?.text].compactMap(\.self)
            things.moods += [call("mood_log", ["person": name, "color": "happy", "emoji": mark(.mood)])?.text]
                .compactMap(\.self)
            things.jobs += [call("enqueue", ["kind": "isolation.job", "args": ["note": mark(.job)]])?.integer]
                .compactMap(\.self)
        }
        if people.isInFamily(user) {
            let hobby = call("hobby_save", ["person": name, "name": mark(.hobby), "fact": mark(.hobby)])
            things.hobbies += [hobby?.text].compactMap(\.self)
        }
        let letter = call(
            "mail_account_notification",
            [
                "recipient": .string("\(people.mark(.letter, user))@mail.example"), "title": mark(.letter),
                "body": mark(.letter),
            ])
        things.letters += [letter?.text].compactMap(\.self)
        let notice = call(
            "own_notice_schedule",
            [
                "person": name, "kind": "reminder", "key": "planted", "at": .string(IsolationPeople.later),
                "data": ["note": mark(.notice)],
            ])
        things.notices += [notice?.text].compactMap(\.self)
        _ = call("person_profile", ["person": name, "display_name": mark(.profile), "locale": "en"])
        _ = call("device_add", ["person": name, "platform": "fcm", "token": mark(.device)])
        _ = call(
            "check_in_contact",
            [
                "person": name, "contact": .string(people.name(people.contact(of: user))), "step": 1,
                "channels": ["push": true],
            ])
        _ = call(
            "check_in_contact",
            [
                "person": name, "contact": mark(.contact), "step": 2,
                "channels": ["mail": .string("\(people.mark(.contact, user))@mail.example")],
            ])
        let device = client.send(
            "POST", "/v1/sync/devices", token: token,
            body: "{\"device\":\"phone-\(user)\",\"name\":\"\(people.mark(.device, user))\"}")
        things.deviceToken = device.json?["token"]?.text
        if things.deviceToken == nil, failure == nil {
            failure = Failure("a device of \(people.name(user)) got no token: \(device.status) \(device.text)")
        }
        return failure.map { .failure($0) } ?? .success(things)
    }

    /// The alarm that every third person raises.
    private func agreeAndArm(_ user: Int, _ client: GatewayClient) -> Result<String?, Failure> {
        let watched = (0..<people.count).filter { people.contact(of: $0) == user }
        for other in watched {
            let answer = client.call(
                "check_in_accept", ["person": .string(people.name(other)), "agrees": true], token: token(user))
            guard answer.isGood else { return .failure(Failure("check_in_accept answered \(answer.text)")) }
        }
        guard user % 3 == 0 else { return .success(nil) }
        let contact = people.contact(of: user)
        _ = client.call(
            "check_in_accept", ["person": .string(people.name(user)), "agrees": true], token: token(contact))
        let name = JSONValue.string(people.name(user))
        for (function, args) in [
            ("check_in_arm", ["person": name, "every": "7 days"] as JSONValue),
            ("check_in_help", ["person": name, "note": .string(people.mark(.alarm, user))]),
        ] {
            let answer = client.call(function, args, token: token(user))
            guard answer.isGood else {
                return .failure(Failure("\(function) answered \(answer.status): \(answer.text)"))
            }
            if let alarm = answer.json?["alarm"]?.text { return .success(alarm) }
        }
        return .failure(Failure("check_in_help named no alarm"))
    }

    /// Pages as the programs that read documents would have made them.
    private func write(on connection: Connection) async throws {
        try await connection.execute(
            """
            insert into millrace.document_page (document, page, status, stage, changed_at)
            select d.id, 1, 'done', 'classify', millrace.now() from millrace.document d where d.title like 'mkd%'
            """, deadline: .seconds(60))
        try await connection.execute(
            """
            insert into millrace.document_content (document, page, tenant, config, text, content, search)
            select d.id, 1, d.tenant, 'simple', 'written by ' || d.title, '{}', to_tsvector('simple', 'written by ' || d.title)
              from millrace.document d where d.title like 'mkd%'
            """, deadline: .seconds(60))
    }

    func token(_ user: Int) -> String { ground.token(people.name(user), tenant: people.tenant(user)) }

    // MARK: playing

    var judge: IsolationJudge {
        var owners: [String: IsolationPeople.Mark] = [:]
        for (user, one) in things.enumerated() {
            for (kind, ids) in [
                (IsolationPeople.Kind.document, one.documents), (.mood, one.moods), (.hobby, one.hobbies),
                (.letter, one.letters), (.notice, one.notices), (.alarm, [one.alarm].compactMap(\.self)),
            ] {
                for id in ids { owners[id.lowercased()] = IsolationPeople.Mark(kind: kind, owner: user) }
            }
        }
        return IsolationJudge(people: people, owners: owners)
    }

    /// Each person's calls, on connections that stay open.
    /// Most wait for a stream that has nothing more to say, so there are many more threads than processors.
    /// - Parameter passed: told of each round of calls that is over.
    func play(
        calls: Int, threads: Int = 64, passed: @escaping @Sendable (Int) -> Void
    ) async -> IsolationJudge.Tally {
        let judge = judge
        let tallies = await OnThreads.each(Array(0..<threads), threads: threads) { thread in
            var tally = IsolationJudge.Tally()
            let client = GatewayClient(port: port)
            let mine = stride(from: thread, to: people.count, by: threads).map { user in
                (user: user, choices: IsolationChoices(self, me: user), token: token(user))
            }
            var choices = mine
            for step in 0..<calls {
                for place in choices.indices {
                    let call = choices[place].choices.next()
                    let answer = make(call, token: choices[place].token, client)
                    judge.judge(call, answer, reader: choices[place].user, step: step, into: &tally)
                }
                passed(choices.count)
            }
            return tally
        }
        return tallies.reduce(into: IsolationJudge.Tally()) { $0.add($1) }
    }

    /// Every name that is no door, once.
    func tryDoors(most: Int, threads: Int = 8) async -> IsolationJudge.Tally {
        let judge = judge
        // The last are those that try to be something else.
        let names = closed.suffix(most)
        let tallies = await OnThreads.each(Array(0..<threads), threads: threads) { thread in
            var tally = IsolationJudge.Tally()
            let client = GatewayClient(port: port)
            let token = token(0)
            for (place, name) in names.enumerated() where place % threads == thread {
                let call = IsolationCall.closed(name)
                judge.judge(call, make(call, token: token, client), reader: 0, step: 0, into: &tally)
            }
            return tally
        }
        return tallies.reduce(into: IsolationJudge.Tally()) { $0.add($1) }
    }

    private func make(_ call: IsolationCall, token: String, _ client: GatewayClient) -> GatewayClient.Answer {
        switch call.way {
        case .call:
            return client.send(call.method, call.path, token: call.token ?? token, body: call.body?.compact)
        case .stream(let wanted):
            return GatewayClient.stream(call.path, token: call.token ?? token, port: port, patience: 1) { events in
                events.count { $0.event == "change" } >= wanted
            }.answer
        }
    }
}

/// Blocking work on threads of its own.
enum OnThreads {
    /// The results, in the order of what was given.
    static func each<Item: Sendable, Result: Sendable>(
        _ items: [Item], threads: Int, _ body: @escaping @Sendable (Item) -> Result
    ) async -> [Result] {
        await withTaskGroup(of: [(Int, Result)].self) { group in
            for thread in 0..<threads {
                group.addTask {
                    await Thread.run(name: "gateway-people") {
                        stride(from: thread, to: items.count, by: threads).map { ($0, body(items[$0])) }
                    }
                }
            }
            var all: [(Int, Result)] = []
            for await some in group { all += some }
            return all.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }
}
