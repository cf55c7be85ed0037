import Foundation
import Postgres
import TestSupport
import Testing

@testable import MillraceApp

/// Every function that apps may call has a call in Swift, and its answer is read by a real gateway.
@Suite struct DoorTourTests {
    /// Functions without a call of their own, each with its reason. `AppClient.call` reaches them all the same.
    static let excused = [
        "check_in_alarm":
            "check_in_help does the same and says who is told; this one is for callers of the first releases.",
        "enqueue_copied":
            "It takes the rows of a COPY in the caller's transaction, and a gateway's call is one of its own.",
        "enqueue_numbered":
            "It is enqueue_many for clients that number their jobs in arrays; JobService.enqueue takes a list.",
        "subscription_link":
            "Its rule is backend: a person who is signed in is refused, or anybody could link a purchase.",
        "subscription_set":
            "Its rule is backend: a person who is signed in is refused, or anybody could give itself a plan.",
        "sync_push_text": "It is sync_push with its list as text, as the gateway's own route /v1/sync hands it in.",
    ]

    @Test func `each function that apps may call has a call in Swift, whose answer is read`() async throws {
        try await AppWorld.with { world in
            let called = Locked<Set<String>>([])
            let observer: @Sendable (AppCallReport) -> Void = { report in
                if report.outcome == .succeeded { called.withLock { _ = $0.insert(report.name) } }
            }
            @Sendable func client(_ person: String) -> AppClient {
                .live(world.calls(person, observer: observer), person, nil)
            }
            try await world.serving {
                for promise in Promise.allCases {
                    let people = await world.people(promise, shifted: { person, _ in client(person) }) { client($0) }
                    if promise != .clock { try await promise.check(people) }
                }
                try await people(world, client)
                try await plan(world, client)
                try await quieter(world, client)
                try await offline(world, observer)
                try await mail(world, client)
                try await questions(world, client)
                try await documents(world, client)
                try await jobs(world, client)
            }
            let doors = Set(
                try await world.owner.query("select name from millrace.door where for_apps and not is_view") {
                    row throws(PostgresError) in try row.string(0)
                })
            let missing = doors.subtracting(called.value).subtracting(Self.excused.keys)
            #expect(missing.sorted() == [], "functions that apps may call without a call in Swift")
            #expect(Self.excused.keys.filter { !doors.contains($0) || called.value.contains($0) } == [])
            print("\(doors.count) functions for apps, \(missing.count) without a call in Swift")
        }
    }

    // MARK: what no promise calls

    private func people(_ world: AppWorld, _ client: (String) -> AppClient) async throws {
        let anna = client("anna")
        _ = try await anna.emergency.setContact(EmergencyContact("mum", mail: "mum@example.org"))
        _ = try await anna.contacts.askAgain("mum")
        try await world.owner.run("select millrace.check_in_confirm('anna', 'mum')")
        let drill = try await anna.emergency.drill()
        #expect(try await anna.alarms.show(drill).test)
        let upload = try await anna.pictures.upload(DocumentFile(Data([1]), name: "a.png", mimeType: "image/png"))
        let picture = try await anna.pictures.process(storageURL: upload, PictureOptions(strip: true))
        try await world.owner.run(
            """
            insert into millrace.media_file (media, kind, blob, size, mime_type)
            select '\(picture)', 'picture', b.id, b.size, 'image/png' from millrace.blob b limit 1;
            update millrace.media set status = 'done', ended_at = now() where id = '\(picture)'
            """)
        #expect(try await anna.pictures.link(picture, .picture).absoluteString.contains("/v1/blobs/"))
        let rows = try await anna.profile.export()
        #expect(rows.contains { $0.room == "checkins" } && rows.allSatisfy { !$0.place.isEmpty })
        #expect(try await anna.profile.exportLink().absoluteString.contains("/v1/exports/"))
        _ = try await anna.notifications.schedule(
            OwnNotice(
                "water", key: "k", at: Date(timeIntervalSinceNow: 600), title: "Water",
                url: URL(string: "app://plants/7")))
        let position: FeedPosition = try await anna.call("feed_position", as: OneRow<FeedPosition>.self, once: false)
            .row
        #expect(position.newest > 0)
    }

    private func plan(_ world: AppWorld, _ client: (String) -> AppClient) async throws {
        let mine = client("anna").subscriptions
        var states = mine.stream().makeAsyncIterator()
        #expect(try await states.next()?.plan == nil)
        try await world.owner.run(
            """
            select millrace.subscription_plan_set('plus', '{"documents": 10}', 1);
            select millrace.subscription_set('plus', person => 'anna', period_end => now() + interval '30 days')
            """)
        let now = try #require(try await states.next())
        #expect(now.plan == "plus" && now.account == "person:anna")
        #expect(try await mine.mine() == now)
        let bought = try #require(now.subscriptions.first)
        #expect(bought.state == "active" && bought.isInForce && bought.renews == true && bought.periodEnd != nil)
        #expect(now.quotas.contains { $0.name == "documents" && $0.limit == 10 && $0.used == 0 })
    }

    private func quieter(_ world: AppWorld, _ client: (String) -> AppClient) async throws {
        let anna = client("anna")
        guard try await world.has("reminder_cancel") else { return }
        let mood = try #require(try await anna.moods.log(NewMood(.calm, buffer: .seconds(600))).value)
        #expect(try await !anna.reminders.cancelNotice(ofMood: mood))
        #expect(try await !anna.reminders.cancel())
        #expect(try await anna.reminders.setChannels(of: "daily_reminder", []))
        #expect(try await !anna.reminders.setChannels(of: "daily_reminder", []))
        #expect(try await anna.reminders.setChannels(of: "daily_reminder", nil))
        let recording = DocumentFile(Data("a song".utf8), name: "song.m4a", mimeType: "audio/mp4")
        let id = try await anna.pictures.keep(recording, as: UUID())
        #expect(try await anna.pictures.state(id).file(.file)?.size == 6)
        _ = try await anna.pictures.link(id, .file)
    }

    private func offline(_ world: AppWorld, _ observer: @escaping @Sendable (AppCallReport) -> Void) async throws {
        try await world.withQueue("anna", world.calls("anna", observer: observer)) { anna, queue, _ in
            #expect(try await anna.moods.log(.happy).value != nil)
            let device = try #require(try await anna.devices.list().first)
            #expect(device.madeAt <= device.expiresAt)
            try await queue.unregister()
            #expect(try await anna.devices.list() == [])
            #expect(try await !anna.devices.end(device.device))
        }
        let page = try await AppClient.live(world.calls("anna", observer: observer), "anna", nil).feed.pull(since: 0)
        #expect(!page.events.isEmpty)
    }

    private func mail(_ world: AppWorld, _ client: (String) -> AppClient) async throws {
        try await world.owner.run(
            """
            select millrace.grant_enqueue('app_people', 'mail.' || k, '*')
              from unnest('{send,password_reset,account_verification,welcome,account_notification}'::text[]) k
            """)
        let sender = client("anna").mailSender
        let at = Date(timeIntervalSinceNow: 3600)
        var own = OutgoingMail(to: ["ben@example.org"], subject: "Hello", text: "It works.")
        own.at = at
        #expect(try await sender.send(own) == own.id)
        #expect(try await sender.reschedule(own.id, to: at.addingTimeInterval(60)))
        let mails = client("anna").mail
        #expect(try await mails.status(of: own.id).status == "scheduled")
        #expect(try await mails.cancel(own.id))
        _ = try await sender.passwordReset(to: "ben@example.org", token: "t0ken-1", user: "ben")
        _ = try await sender.verification(to: "ben@example.org", token: "t0ken-2")
        _ = try await sender.welcome(to: "ben@example.org", name: "Ben")
        _ = try await sender.notification(to: "ben@example.org", title: "New phone", body: "It is signed in.")
    }

    /// A worker's part is done by the owner: it answers what is asked.
    private func questions(_ world: AppWorld, _ client: (String) -> AppClient) async throws {
        try await world.owner.run(
            """
            select millrace.ai_providers_tell('[{"name": "openai", "place": 1, "wire": "openai", "model": "m", "has_batches": false}]');
            select millrace.ai_switch('tenant', 'person:anna', true)
            """)
        let (anna, eve) = (client("anna"), client("eve"))
        #expect(try await eve.families.create("eves", zone: "UTC"))
        #expect(try await eve.ai.setOn(true, family: "eves"))
        #expect(try await eve.chat.leave(try await eve.chat.begin(NewThread(title: "Left"))))
        let answering = Task {
            while !Task.isCancelled {
                try await world.owner.run(
                    """
                    select millrace.ai_answer_with(id, case purpose
                        when 'hobby_intro' then '{"title": "Chess", "intro": "A game.", "questions": ["Since when?"]}'
                        when 'flash_card' then '{"question": "Who sits for nine hours?"}'
                        when 'coaching_tip' then '{"tip": "Go out.", "action": "Walk."}'
                        when 'conversation_tone' then '{"score": -0.5, "tone": "tense", "summary": "Some are tired."}'
                        else '{"sentiment": "negative", "concern": "low", "summary": "Tired."}' end::jsonb, 'openai', 'm')
                      from millrace.ai_question where status in ('waiting', 'asking')
                    """)
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        let intro = try await anna.ai.introduction(to: "Chess", fact: "Nine hours once")
        #expect(intro == HobbyIntroduction(title: "Chess", intro: "A game.", questions: ["Since when?"]))
        #expect(try await anna.ai.cardQuestion("Chess", fact: "Nine hours once") == "Who sits for nine hours?")
        #expect(try await anna.ai.tip(for: .tired, topic: "school") == MoodTip(tip: "Go out.", action: "Walk."))
        let tone = try await anna.ai.tone(of: "What a long day.")
        #expect(tone == TextTone(sentiment: "negative", concern: "low", summary: "Tired."))
        let own = try await anna.ai.questions()
        #expect(own.map(\.purpose) == ["sentiment", "coaching_tip", "flash_card", "hobby_intro"])
        if try await world.has("mood_tip") {
            let mood = try #require(try await anna.moods.log(.tired).value)
            #expect(try await anna.ai.tip(forMood: mood) == MoodTip(tip: "Go out.", action: "Walk."))
            let thread = try await eve.chat.begin(NewThread())
            _ = try await eve.chat.send("What a day.", to: thread)
            let tone = try await eve.ai.tone(ofThread: thread)
            #expect(tone == ThreadTone(score: -0.5, tone: "tense", summary: "Some are tired."))
        }
        answering.cancel()
        _ = try? await answering.value
        #expect(try await anna.ai.answer(own[0].id).status == "answered")
    }

    private func documents(_ world: AppWorld, _ client: (String) -> AppClient) async throws {
        let documents = client("anna").documents
        var reading = ReadingOptions(mode: .redo, outputs: [.pdf, .markdown, .text], isAnalyzed: true)
        (reading.isArchive, reading.isLevelled, reading.isCleaned, reading.isSplit) = (true, true, true, true)
        (reading.pictures, reading.languages, reading.isStrict) = (.small, ["eng", "deu"], true)
        let details = DocumentDetails(title: "Railways", lessonID: "geography", reading: reading)
        let id = try await documents.register(storageURL: "https://a.example/railways.pdf", details)
        #expect(try await documents.analysis(of: id) == nil)
        try await world.owner.run(
            """
            insert into millrace.ai_question (id, purpose, version, actor, caller, locale, input, key, room, ref, status, answer, asked_at, ended_at)
            values (gen_random_uuid(), 'document_analysis', 0, 'anna', 'app_people', 'en', '{}', 'k', 'documents', '\(id)', 'answered',
                    '{"summary": "Rails.", "key_points": ["Steep"], "questions": [{"question": "How steep?", "answer": "Very."}]}', now(), now());
            update millrace.document set status = 'failed', finished_at = now() where id = '\(id)'
            """)
        let analysis = try #require(try await documents.analysis(of: id))
        #expect(analysis.summary == "Rails." && analysis.keyPoints == ["Steep"])
        #expect(analysis.questions == [DocumentAnalysis.Question(question: "How steep?", answer: "Very.")])
        #expect(try await documents.analyses(in: "geography").map(\.document) == [id])
        #expect(try await documents.history(in: "geography", since: 0).first?.change == "created")
        #expect(try await documents.retry(id, pages: nil, mode: .force))
        #expect(try await documents.search("railway") == [])
        #expect(try await documents.delete(id).value == true)
    }

    private func jobs(_ world: AppWorld, _ client: (String) -> AppClient) async throws {
        try await world.owner.run(
            """
            select millrace.grant_enqueue('app_people', 'app.work', '*');
            select millrace.grant_enqueue('app_people', 'template.render', '*');
            select millrace.grant_publish('app_people', 'com.example.made')
            """)
        let jobs = client("anna").jobs
        let id = try await jobs.enqueue(JobRequest("app.work", ["size": 3], queue: "app", uniqueKey: "one"))
        let many = try await jobs.enqueue([
            JobRequest("app.work", queue: "app", runAt: Date(timeIntervalSinceNow: 600)),
            JobRequest("app.work", queue: "app"),
        ])
        #expect(many.map(\.created) == [true, true])
        let job = try #require(try await jobs.job(id))
        #expect(job.kind == "app.work" && job.queue == "app" && job.state == "ready" && job.args == ["size": 3])
        #expect(try await jobs.mine().contains(job))
        #expect(try await jobs.job(of: "app.work", key: "one") == id)
        #expect(try await jobs.why(many[0].id)?.reason == "time")
        #expect(try await jobs.flow(id).map(\.job) == [id])
        #expect(try await jobs.result(of: id, as: Result.self) == nil)
        #expect(try await jobs.state(id) == nil)
        try await world.owner.run(
            """
            insert into millrace.result (job, value) values (\(id), '{"pages": 7}');
            insert into millrace.output (job, state, state_attempt, state_at, last, kept, bytes) values (\(id), '{"at": "page 3"}', 1, now(), 1, 1, 10);
            insert into millrace.published (job, n, key, value, session, number, attempt, at) values (\(id), 1, 'page', '"text"', 1, 1, 1, now())
            """)
        #expect(try await jobs.result(of: id, as: Result.self) == Result(pages: 7))
        let state = try #require(try await jobs.state(id))
        #expect(state.value == ["at": "page 3"] && state.attempt == 1 && state.published == 1)
        let published = try await jobs.published(id)
        #expect(published.map(\.value) == ["text"] && published.map(\.n) == [1] && published[0].key == "page")
        #expect(try await jobs.signal("paid", key: "7", ["amount": 7], id: "s1"))
        #expect(try await !jobs.signal("paid", key: "7", ["amount": 7], id: "s1"))
        #expect(try await jobs.signal(job: id, "go"))
        _ = try await jobs.render("welcome", ["app_name": "Shop", "user_name": "Ada"])
        let event = UUID()
        #expect(try await jobs.publish("com.example.made", source: "urn:app", ["a": 1], id: event) == event)
        #expect(try await jobs.cancelFlow(of: many[1].id) == 1)
        // Its stream says how it stands, and ends with it.
        var states = jobs.follow(id).makeAsyncIterator()
        #expect(try await states.next()?.state == "ready")
        #expect(try await jobs.cancel(id))
        #expect(try await states.next()?.state == "cancelled")
        #expect(try await states.next() == nil)
    }

    private struct Result: Decodable, Equatable, Sendable {
        let pages: Int
    }
}
