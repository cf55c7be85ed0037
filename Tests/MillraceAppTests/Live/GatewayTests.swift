import Foundation
import Postgres
import TestSupport
import Testing

@testable import MillraceApp

@Suite struct GatewayPromiseTests {
    @Test func `the gateway keeps what the doubles promise`() async throws {
        try await AppWorld.with { world in
            try await world.serving {
                for promise in Promise.allCases {
                    let people = await world.people(
                        promise, shifted: { AppClient.live(world.calls($0, shift: $1), $0, nil) }
                    ) { world.client($0) }
                    await check(promise, people)
                }
            }
        }
    }

    @Test func `through the queue on disk it keeps the same`() async throws {
        try await AppWorld.with { world in
            let directory = FileManager.default.temporaryDirectory.appending(path: "queues-\(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: directory) }
            try await world.serving {
                for promise in Promise.allCases {
                    let people = try await world.people(
                        promise,
                        shifted: { person, shift in
                            let calls = world.calls(person, shift: shift)
                            let queue = try await OfflineQueue(
                                directory: directory.appending(path: "\(person) \(shift)"), person: person, calls: calls
                            )
                            return .live(calls, person, queue)
                        }
                    ) { person in
                        let queue = try await OfflineQueue(
                            directory: directory.appending(path: person), person: person, calls: world.calls(person))
                        return world.client(person, queue)
                    }
                    await check(promise, people)
                }
            }
        }
    }

    /// One that is broken does not hide the others.
    private func check(_ promise: Promise, _ people: People) async {
        do {
            try await promise.check(people)
        } catch {
            Issue.record(error, "\(promise)")
        }
    }
}

@Suite struct SignInTests {
    @Test func `a refused token is replaced once, and the call made again`() async throws {
        try await AppWorld.with { world in
            try await world.serving {
                let given = Locked<[String?]>([])
                let calls = world.calls("anna") { rejected in
                    given.withLock { $0.append(rejected) }
                    return AppWorld.token(of: "anna", seconds: rejected == nil ? -3600 : 3600)
                }
                let points = await withTaskGroup(of: Int?.self) { group in
                    for _ in 0..<10 { group.addTask { try? await calls.ask("points", ["person": "anna"]) } }
                    return await group.reduce(into: [Int?]()) { $0.append($1) }
                }
                #expect(points == Array(repeating: 0, count: 10))
                #expect(given.value.count == 2 && given.value[0] == nil && given.value[1] != nil)
            }
        }
    }

    @Test func `a sign-in that stays refused is told as such, without more attempts`() async throws {
        try await AppWorld.with { world in
            try await world.serving {
                let asked = Locked(0)
                let calls = world.calls("anna") { _ in
                    asked.add()
                    return AppWorld.token(of: "anna", seconds: -3600)
                }
                let error = try await failure(as: AppError.self) {
                    let _: Int = try await calls.ask("points", ["person": "anna"])
                }
                #expect(error?.kind == .unauthenticated && error?.status == 401 && error?.requestID != nil)
                #expect(asked.value == 2)
                let refused = try await failure(as: AppError.self) {
                    for try await _ in AppClient.live(calls, "anna", nil).feed.changes() {}
                }
                #expect(refused?.kind == .unauthenticated)
            }
        }
    }

    @Test func `a call whose answer was lost is done once, however often it is repeated`() async throws {
        try await AppWorld.with { world in
            try await world.serving {
                let calls = world.calls("anna")
                var request = try calls.post(
                    "v1/rpc/mood_log", ["person": "anna", "color": "happy"] as [String: AppValue], name: "mood_log")
                request.headers["Idempotency-Key"] = "the-same-each-time"
                let first: UUID = try AppCalls.decoded(try await calls.send(request))
                let again = try await calls.send(request)
                #expect(try AppCalls.decoded(again) as UUID == first)
                #expect(again.header("idempotent-replayed") == "true")
                #expect(try await world.client("anna").moods.moods().map(\.id) == [first])
            }
        }
    }

    @Test func `a text that is longer than an answer comes in parts, and is whole`() async throws {
        try await AppWorld.with { world in
            try await world.serving {
                let calls = world.calls("anna")
                let id: UUID = try await calls.act("document_register", ["storage_url": "https://a.example/x"])
                // Of seven pages the fifth has not been read, and the last is longer than an answer by itself.
                try await world.owner.run(
                    """
                    update millrace.document set pages = 7 where id = '\(id)';
                    insert into millrace.document_page (document, page, status, stage, changed_at)
                    select '\(id)', n, 'done', 'done', now() from generate_series(1, 7) n;
                    insert into millrace.document_content (document, page, config, text, content, search)
                    select '\(id)', n, 'simple', repeat(n::text, case n when 7 then 2000000 when 3 then 0 else 400000 end), '{}', ''
                      from generate_series(1, 7) n where n <> 5
                    """)
                let documents = world.client("anna").documents
                func pages(_ range: ClosedRange<Int>?) async throws -> [String] {
                    try await documents.text(id, pages: range).split(
                        separator: "\u{0C}", omittingEmptySubsequences: false
                    ).map { "\($0.first.map(String.init) ?? "-")\($0.utf8.count)" }
                }
                #expect(try await pages(nil) == ["1400000", "2400000", "-0", "4400000", "6400000", "72000000"])
                #expect(try await pages(2...6) == ["2400000", "-0", "4400000", "6400000"])
                #expect(try await pages(7...7) == ["72000000"])
            }
        }
    }

    @Test func `a call that finds no gateway is made again until there is one`() async throws {
        try await AppWorld.with { world in
            let calls = world.calls("anna", attempts: 1000)
            let points = Task { try await calls.ask("points", ["person": "anna"], as: Int.self) }
            let once = try await failure(as: AppError.self) {
                let _: Int = try await world.calls("anna").ask("points", ["person": "anna"])
            }
            #expect(once?.kind == .unavailable && once?.status == nil)
            let answer = try await world.serving { try await points.value }
            #expect(answer == 0)
        }
    }
}

@Suite struct AppStreamTests {
    /// Follows the moods of three rounds: in each a gateway runs for some of them, and is away for one.
    private func follow(polls: Bool) async throws {
        try await AppWorld.with { world in
            let calls = world.calls("anna")
            let seen = Locked<[FeedChange]>([])
            let readies = Locked(0)
            var reader = FeedReader(calls: calls, path: "v1/me/events", topics: ["moods"])
            reader.polls = polls
            let events = reader.events(since: 0)
            let reading = Task {
                for try await event in events {
                    switch event {
                    case .ready: readies.add()
                    case .change(let change): seen.withLock { $0.append(change) }
                    case .reset: Issue.record("nothing was lost")
                    }
                }
            }
            var logged: [String] = []
            for _ in 0..<3 {
                logged += try await world.serving {
                    var ids: [String] = []
                    for _ in 0..<5 {
                        let mood = NewMood(.calm)
                        _ = try await world.client("anna").moods.log(mood)
                        ids.append(mood.id.uuidString.lowercased())
                    }
                    return ids
                }
                // While the gateway is away, more happens.
                let away = NewMood(.tired)
                _ = try await world.owner.query(
                    "select millrace.mood_log('anna', 'tired', id => $1::uuid, actor => 'anna')",
                    [.text(away.id.uuidString)]
                ) { _ throws(PostgresError) in true }
                logged.append(away.id.uuidString.lowercased())
            }
            let wanted = logged
            try await world.serving {
                try await eventually("all changes have come") { seen.value.count >= wanted.count }
            }
            #expect(seen.value.map(\.ref) == wanted)
            #expect(Set(seen.value.map(\.seq)).count == wanted.count)
            #expect(polls ? readies.value == 1 : readies.value >= 1)
            reading.cancel()
            _ = try? await reading.value
        }
    }

    @Test func `a stream gives each change once and in order, over restarts of the gateway`() async throws {
        try await follow(polls: false)
    }

    @Test func `long polling gives the same where streams do not come through`() async throws {
        try await follow(polls: true)
    }

    @Test func `polling from now on begins with the position of now`() async throws {
        try await AppWorld.with { world in
            try await world.serving {
                let anna = world.client("anna")
                _ = try await anna.moods.log(.sad)
                // A change that has no number yet comes after any position.
                try await eventually("the first mood has its number") {
                    try await world.owner.int("select count(*) from millrace.feed where seq is null") == 0
                }
                var reader = FeedReader(calls: world.calls("anna"), path: "v1/me/events", topics: ["moods"])
                reader.polls = true
                var events = reader.events(since: nil).makeAsyncIterator()
                guard case .ready = try await events.next() else {
                    Issue.record("it did not begin with ready")
                    return
                }
                let mood = NewMood(.calm)
                _ = try await anna.moods.log(mood)
                guard case .change(let change) = try await events.next() else {
                    Issue.record("no change came")
                    return
                }
                #expect(change.ref == mood.id.uuidString.lowercased())
            }
        }
    }

    @Test func `a stream whose token is over goes on with another token`() async throws {
        try await AppWorld.with { world in
            try await world.serving {
                let asked = Locked(0)
                // Good for one second, and then for an hour; the leeway of the gateway is the 30 seconds before.
                let calls = world.calls("anna") { rejected in
                    asked.add()
                    return AppWorld.token(of: "anna", seconds: rejected == nil ? -28 : 3600)
                }
                var events = AppClient.live(calls, "anna", nil).feed.changes().makeAsyncIterator()
                var readies = 0
                while readies < 2, case .ready = try await events.next() { readies += 1 }
                #expect(readies == 2 && asked.value == 2)
            }
        }
    }
}
