import CommandKit
import LoadKit

/// One call of a person, and what may come of it.
struct IsolationCall: Sendable {
    enum Expectation: Sendable {
        /// Whatever is the caller's to see: the marks decide.
        case own
        /// It names what is a stranger's: refused, or an answer that says that there is nothing.
        case nothing
        /// A function that is not for apps.
        case noDoor
        case noToken
        /// A good token, for something else.
        case refused
    }

    enum Way: Sendable {
        case call
        /// Reads a stream until this number of changes has come.
        case stream(Int)
    }

    var what: String
    var method = "POST"
    var path: String
    var body: JSONValue?
    /// Instead of the person's own.
    var token: String?
    var way = Way.call
    var expectation = Expectation.own
    /// What the call itself names, so an answer may repeat it.
    var named: Set<String> = []

    static func rpc(_ function: String, _ args: [(String, JSONValue)], _ expectation: Expectation = .own)
        -> IsolationCall
    {
        var call = IsolationCall(
            what: function, path: "/v1/rpc/\(function)",
            body: .object(args.map { .init(key: $0.0, value: $0.1) }), expectation: expectation)
        call.named = Set(args.flatMap { Self.texts($0.1) })
        return call
    }

    private static func texts(_ value: JSONValue) -> [String] {
        switch value {
        case .string(let text): [text]
        case .array(let items): items.flatMap(texts)
        case .object(let members): members.flatMap { texts($0.value) }
        case .null, .bool, .int, .double, .number, .raw: []
        }
    }
}

/// Chooses calls of one person at random: of their own things, of their fellows', of strangers', of doors that are not there.
struct IsolationChoices {
    let people: IsolationPeople
    let things: [IsolationThings]
    let ground: GatewayGround
    let closed: [String]
    let me: Int
    private var random: SeededChoices

    init(_ world: IsolationWorld, me: Int) {
        (people, things, ground, closed, self.me) = (world.people, world.things, world.ground, world.closed, me)
        random = SeededChoices(seed: people.seed &+ 7_777 &* UInt64(me + 1))
    }

    private mutating func any<Value>(_ values: [Value]) -> Value? { values.randomElement(using: &random) }

    private mutating func other() -> Int {
        let first = people.group(me) * IsolationPeople.groupSize
        if random.chance(0.25) {
            return Int.random(in: first..<min(first + IsolationPeople.groupSize, people.count), using: &random)
        }
        return Int.random(in: 0..<people.count, using: &random)
    }

    private func expectation(of other: Int) -> IsolationCall.Expectation {
        people.group(other) == people.group(me) ? .own : .nothing
    }

    mutating func next() -> IsolationCall {
        switch Int.random(in: 0..<100, using: &random) {
        case ..<22: ownList()
        case ..<34: ownWrite()
        case ..<52: read(of: random.chance(0.4) ? me : other())
        case ..<66: object(of: random.chance(0.35) ? me : other())
        case ..<80: act(on: other())
        case ..<86: stream()
        case ..<91: forged()
        case ..<94: mixed()
        default: noDoor()
        }
    }

    // MARK: own

    private mutating func ownList() -> IsolationCall {
        let name = JSONValue.string(people.name(me))
        let since = JSONValue.int(Int.random(in: 0...2000, using: &random))
        let calls: [IsolationCall] = [
            .rpc("document_list", []), .rpc("document_feed", []), .rpc("own_jobs", []),
            .rpc("document_search", [("query", .string(people.mark(.document, other())))]),
            .rpc("feed_mine", [("since", since)]), .rpc("feed_mine", [("topics", ["moods", "alarms", "documents"])]),
            .rpc("sync_pull", []), .rpc("sync_devices", []),
            .rpc("moods", [("person", name)]), .rpc("check_in_show", [("person", name)]),
            .rpc("hobbies", [("family", .string(people.family(me)))]),
            .rpc("family_invitations", [("of_person", name)]),
            IsolationCall(what: "sync read", method: "GET", path: "/v1/sync?since=0"),
            IsolationCall(what: "long poll", method: "GET", path: "/v1/me/events?since=0&wait=1"),
        ]
        return any(calls) ?? calls[0]
    }

    private mutating func ownWrite() -> IsolationCall {
        let name = JSONValue.string(people.name(me))
        let calls: [IsolationCall] = [
            .rpc("mood_log", [("person", name), ("color", "happy"), ("emoji", .string(people.mark(.mood, me)))]),
            .rpc("check_in", [("person", name)]), .rpc("check_in", [("person", name)]),
            .rpc("enqueue", [("kind", "isolation.job"), ("args", ["note": .string(people.mark(.job, me))])]),
            .rpc(
                "document_register",
                [("storage_url", "https://files.example/a.pdf"), ("title", .string(people.mark(.document, me)))]),
            .rpc(
                "own_notice_schedule",
                [
                    ("person", name), ("kind", "reminder"), ("key", "again"), ("at", .string(IsolationPeople.later)),
                    ("data", ["note": .string(people.mark(.notice, me))]),
                ]),
            sync(on: me, .own),
        ]
        return any(calls) ?? calls[0]
    }

    /// An offline batch that names another as the person of its operations.
    private mutating func sync(on other: Int, _ expectation: IsolationCall.Expectation) -> IsolationCall {
        let person = JSONValue.string(people.name(other))
        let ops: [JSONValue] = [
            ["id": .string(id()), "op": "check_in", "at": "2026-01-01T00:00:00Z", "args": ["person": person]],
            [
                "id": .string(id()), "op": "mood_log", "at": "2026-01-01T00:00:00Z",
                "args": ["person": person, "color": "happy", "emoji": .string(people.mark(.mood, me))],
            ],
        ]
        var call = IsolationCall(
            what: "sync", path: "/v1/sync", body: ["device": .string("phone-\(me)"), "ops": .array(ops)],
            expectation: expectation)
        if random.chance(0.5) { call.token = things[me].deviceToken.map { "Device \($0)" } }
        return call
    }

    private mutating func id() -> String {
        let hex = (0..<4).map { _ in
            let part = String(UInt32.random(in: .min ... .max, using: &random), radix: 16)
            return String(repeating: "0", count: 8 - part.count) + part
        }.joined()
        let digits = Array(hex)
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
    }

    // MARK: others

    private mutating func read(of other: Int) -> IsolationCall {
        let expectation = expectation(of: other)
        let person: [(String, JSONValue)] = [("person", .string(people.name(other)))]
        let family: [(String, JSONValue)] = [("family", .string(people.family(other)))]
        let functions = ["moods", "points", "streak", "weekly_stats", "quest_history", "check_in_show"]
        switch Int.random(in: 0..<10, using: &random) {
        case ..<5: return .rpc(any(functions) ?? "moods", person, expectation)
        case ..<7: return .rpc(any(["hobbies", "cards", "quest_today"]) ?? "hobbies", family, expectation)
        case 7:
            return .rpc("family_invitations", [("of_family", .string(people.family(other)))], expectation)
        case 8:
            // An actor that is not the caller is refused, whose data ever it asks for.
            return .rpc("moods", person + [("actor", person[0].1)], other == me ? .own : .nothing)
        default:
            let tenant = JSONValue.string(people.tenant(other) ?? people.name(other))
            let isOwn = people.tenant(other).map { $0 == people.tenant(me) } ?? (other == me)
            return .rpc("document_list", [("tenant", tenant)], isOwn ? .own : .nothing)
        }
    }

    private mutating func object(of other: Int) -> IsolationCall {
        let expectation = expectation(of: other)
        let one = things[other]
        let document = any(one.documents) ?? id()
        let job = any(one.jobs) ?? 1
        switch Int.random(in: 0..<10, using: &random) {
        case 0: return .rpc("document", [("id", .string(document))], expectation)
        case 1: return .rpc("document_text", [("id", .string(document))], expectation)
        case 2: return .rpc("document_link", [("id", .string(document)), ("kind", "original")], expectation)
        case 3: return .rpc("mail_message", [("id", .string(any(one.letters) ?? id()))], expectation)
        case 4, 5: return .rpc(any(["job", "why", "flow_tree"]) ?? "job", [("id", .int(job))], expectation)
        case 6:
            return get("/v1/documents/\(document)/file?kind=original", "file", expectation, naming: document)
        case 7:
            return get(
                "/v1/documents/\(document)/events?since=0&wait=1", "document poll", expectation, naming: document)
        case 8: return get("/v1/jobs/\(job)/events?since=0&wait=1", "job poll", expectation, naming: "")
        default:
            var call = get("/v1/documents/\(document)/events?since=0", "document stream", expectation, naming: document)
            call.way = .stream(1)
            return call
        }
    }

    private func get(
        _ path: String, _ what: String, _ expectation: IsolationCall.Expectation, naming: String
    ) -> IsolationCall {
        IsolationCall(what: what, method: "GET", path: path, expectation: expectation, named: [naming])
    }

    /// Changes something of a stranger's; of a fellow's only what a fellow may.
    private mutating func act(on chosen: Int) -> IsolationCall {
        var other = chosen
        while people.group(other) == people.group(me), people.groups > 1 {
            other = Int.random(in: 0..<people.count, using: &random)
        }
        let one = things[other]
        let name = JSONValue.string(people.name(other))
        let person: [(String, JSONValue)] = [("person", name)]
        let document = JSONValue.string(any(one.documents) ?? id())
        let job = JSONValue.int(any(one.jobs) ?? 1)
        let mood: [(String, JSONValue)] = [("color", "sad"), ("emoji", .string(people.mark(.mood, me)))]
        let calls: [IsolationCall] = [
            .rpc("check_in", person), .rpc("check_in", person + [("actor", name)]), .rpc("check_in_disarm", person),
            .rpc("check_in_pause", person + [("until", .string(IsolationPeople.later))]), .rpc("check_in_help", person),
            .rpc("check_in_alarm", person), .rpc("check_in_set_interval", person + [("every", "1 day")]),
            .rpc("check_in_contact", person + [("contact", "me"), ("step", 1), ("channels", ["push": true])]),
            .rpc("check_in_contact_remove", person + [("contact", .string(people.name(people.contact(of: other))))]),
            .rpc("check_in_accept", person + [("agrees", true)]), .rpc("check_in_drill", person),
            .rpc(
                "check_in_respond",
                [
                    ("alarm", .string(one.alarm ?? id())), ("contact", .string(people.name(people.contact(of: other)))),
                    ("answer", "acknowledged"),
                ]),
            .rpc("mood_log", person + mood), .rpc("mood_delete", [("id", .string(any(one.moods) ?? id()))]),
            .rpc("hobby_save", person + [("name", "x"), ("fact", "y")]),
            .rpc("hobby_seen", [("hobby", .string(any(one.hobbies) ?? id())), ("person", .string(people.name(me)))]),
            .rpc("quest_complete", [("family", .string(people.family(other)))] + person),
            .rpc("quest_undo", [("family", .string(people.family(other)))] + person),
            .rpc("family_join", [("family", .string(people.family(other))), ("role", "parent")] + person),
            .rpc(
                "family_join",
                [("family", .string(people.family(other))), ("role", "teen"), ("person", .string(people.name(me)))]),
            .rpc("family_leave", [("family", .string(people.family(other)))] + person),
            .rpc("family_zone", [("family", .string(people.family(other))), ("zone", "UTC")]),
            .rpc("person_erase", person), .rpc("person_profile", person + [("display_name", "x")]),
            .rpc(
                "notice_preferences",
                person + [
                    ("zone", "UTC"), ("quiet_from", "22:00"), ("quiet_to", "06:00"), ("channels", [:]),
                    ("locale", "en"),
                ]),
            .rpc("device_add", person + [("platform", "fcm"), ("token", .string("stranger-token-\(me)-0123456789"))]),
            .rpc("device_remove", [("token", .string(people.mark(.device, other)))]),
            .rpc(
                "own_notice_schedule",
                person + [("kind", "reminder"), ("key", "theirs"), ("at", .string(IsolationPeople.later))]),
            .rpc("own_notice_cancel", person + [("key", "planted")]),
            .rpc("own_notice_move", person + [("key", "planted"), ("at", .string(IsolationPeople.later))]),
            .rpc("document_delete", [("ids", .array([document]))]), .rpc("document_retry", [("id", document)]),
            .rpc("cancel", [("id", job)]), .rpc("flow_cancel", [("id", job)]),
            .rpc("mail_cancel", [("id", .string(any(one.letters) ?? id()))]),
            .rpc(
                "enqueue", [("kind", "isolation.job"), ("tenant", .string(people.tenant(other) ?? people.name(other)))]),
            .rpc("sync_device_remove", [("device", .string("phone-\(other)"))]), sync(on: other, .nothing),
        ]
        var call = any(calls) ?? calls[0]
        call.expectation = people.group(other) == people.group(me) ? .own : .nothing
        return call
    }

    private mutating func stream() -> IsolationCall {
        var call = IsolationCall(what: "stream of all", method: "GET", path: "/v1/me/events?since=0", way: .stream(3))
        if random.chance(0.5) { call.path = "/v1/me/events?topics=documents,moods&since=0" }
        if random.chance(0.3) {
            // Lessons are named alike by all.
            call = IsolationCall(
                what: "stream of a lesson", method: "GET", path: "/v1/lessons/lesson-1/events?since=0&wait=1")
        }
        return call
    }

    // MARK: forged

    private mutating func forged() -> IsolationCall {
        let victim = other()
        var call = read(of: victim)
        call.what = "forged token"
        call.expectation = .noToken
        let claims = GatewayGround.claims(people.name(victim), tenant: people.tenant(victim))
        let good = ground.token(people.name(victim), tenant: people.tenant(victim))
        let parts = good.split(separator: ".").map(String.init)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: call.token = GatewayToken.signed(claims, secret: "another-secret-of-thirty-two-bytes")
        case 1:
            let none = GatewayToken.signed(claims, secret: "x", header: ["alg": "none", "typ": "JWT"])
            call.token = none.split(separator: ".").prefix(2).joined(separator: ".") + "."
        case 2: call.token = ground.token(people.name(victim), tenant: people.tenant(victim), expires: -3600)
        case 3:
            // My signature under another's claims.
            let mine = ground.token(people.name(me)).split(separator: ".").map(String.init)
            call.token = "\(parts[0]).\(parts[1]).\(mine[2])"
            if victim == me { call.token = "\(parts[0]).\(parts[1]).AAAA" }
        case 4: call.token = GatewayToken.signed(claims, secret: ground.secret, header: ["alg": "RS256", "typ": "JWT"])
        default:
            // A device token is good for the offline intake alone.
            call.expectation = .refused
            call.token = things[me].deviceToken.map { "Device \($0)" } ?? "Device none"
        }
        return call
    }

    /// Own and foreign calls in one transaction: none of it happens.
    private mutating func mixed() -> IsolationCall {
        var victim = other()
        while people.group(victim) == people.group(me), people.groups > 1 {
            victim = Int.random(in: 0..<people.count, using: &random)
        }
        let own: JSONValue = ["function": "moods", "args": ["person": .string(people.name(me))]]
        let foreign: JSONValue = ["function": "check_in_show", "args": ["person": .string(people.name(victim))]]
        let isAlone = people.group(victim) == people.group(me)
        return IsolationCall(
            what: "batch", path: "/v1/batch",
            body: ["calls": .array(random.chance(0.5) ? [own, foreign] : [foreign, own])],
            expectation: isAlone ? .own : .nothing)
    }

    private mutating func noDoor() -> IsolationCall {
        IsolationCall.closed(any(closed) ?? "finish")
    }
}

extension IsolationCall {
    /// A function that apps may not call, by a name as it stands in an address.
    static func closed(_ name: String) -> IsolationCall {
        IsolationCall(what: "no door", path: "/v1/rpc/\(name)", body: [:], expectation: .noDoor, named: [name])
    }
}
