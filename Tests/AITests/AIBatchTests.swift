import Fakes
import Foundation
import JSON
import Postgres
import TestSupport
import Testing

@testable import AI

/// Questions that may wait, in batches of both formats and with their faults.
@Suite struct AIBatchTests {
    @Test(arguments: [false, true]) func `two hundred questions are answered in batches, each once, whatever fails`(
        anthropic: Bool
    ) async throws {
        let good = goodAnswers["sentiment"] ?? ""
        try await withAI { asked in
            guard asked.isBatched else { return .answer(good) }
            // By the question, and not by the order, which is another in each run.
            return
                switch Int(asked.prompt.split(separator: "day ").last?.prefix { $0.isNumber } ?? "").map({ $0 % 10 })
            {
            case 3: .status(500, headers: [], body: "")
            case 5: .lost("")
            case 7: .answer(#"{"sentiment": "fine"}"#)
            default: .answer(good)
            }
        } _: { bench in
            try await bench.configureBatches(anthropic)
            bench.fake.batches.set { $0.refusals = 1 }
            for n in 0..<200 { try await bench.askLater("day \(n % 190)") }
            try await bench.gather()
            try await bench.withWorker(onlyAnthropic: anthropic) {
                $0.mostInBatch = 60
            } _: {
                try await bench.ended(190)
                // The identical ones wait for the answers of the others.
                try await bench.gather()
                try await bench.ended(200)
                try await bench.settled()
                // Neither the files that were refused nor those of batches that have ended.
                try await bench.forgotten()
            }
            #expect(try await bench.count("status = 'answered'") == 200)
            // An identical one is asked again only where the first had no answer in its batch, and waits for its own job.
            let again = 10 - (try await bench.count("source is not null"))
            #expect((0...3).contains(again))
            #expect(
                (190...193).contains(bench.fake.batches.calls.count) && bench.fake.batches.sizes.allSatisfy { $0 <= 60 }
            )
            #expect(Set(bench.fake.batches.calls).count == bench.fake.batches.calls.count)
            let singly = bench.fake.asked.filter { !$0.isBatched }
            #expect(singly.count == 190 * 3 / 10 + again && Set(singly.map(\.prompt)).count == 190 * 3 / 10)
            let told = bench.fake.told
            #expect(try await bench.used() == told.tokensIn + told.tokensOut)
            #expect(
                try await bench.connection.int("select count(*) from millrace.ai_batch where status = 'ended'") >= 4)
        }
    }

    @Test(arguments: [false, true])
    func
        `what a batch asked and answered is deleted at the provider, again until it succeeds, and its answers do not wait for that`(
            anthropic: Bool
        ) async throws
    {
        try await withAI { bench in
            try await bench.configureBatches(anthropic)
            bench.fake.batches.set { $0.failedDeletions = 1_000_000 }
            try await bench.askLater("day")
            try await bench.gather()
            try await bench.withWorker(onlyAnthropic: anthropic) {
                try await bench.ended(1)
                try await bench.settled()
                #expect(try await bench.count("status = 'answered'") == 1)
                let tries = "select coalesce(max(tries), 0) from millrace.ai_leftover"
                for round in 1...3 {
                    try await eventually("a deletion has failed") {
                        try await bench.forgetAgain()
                        return try await bench.connection.int(tries) >= round
                    }
                }
                #expect(bench.fake.batches.kept.isEmpty == false)
                let troubles = try await AIAdmin.troubles(on: bench.connection, deadline: .ample)
                let name = anthropic ? "anthropic msgbatch_0" : "openai batch_0"
                #expect(troubles.undeleted > 0 && troubles.undeletedNames.contains(name))
                #expect(try await AIAdmin.state(on: bench.connection).undeleted == troubles.undeleted)
                bench.fake.batches.set { $0.failedDeletions = 0 }
                try await bench.forgetAgain()
                try await bench.forgotten()
            }
            #expect(try await AIAdmin.state(on: bench.connection).undeleted == 0)
        }
    }

    @Test
    func
        `what cannot be deleted for two weeks stays on record for a month more, and a job that was cancelled comes again`()
        async throws
    {
        try await withAI { bench in
            try await bench.configureBatches(true)
            bench.fake.batches.set { $0.failedDeletions = 1_000_000 }
            try await bench.askLater("day")
            try await bench.gather()
            let db = bench.connection
            try await bench.withWorker(onlyAnthropic: true) {
                try await bench.ended(1)
                try await eventually("it was tried") {
                    try await db.bool("select max(tries) = 1 from millrace.ai_leftover")
                }
                let pause = "select extract(epoch from due_at - tried_at)::int from millrace.ai_leftover"
                #expect(try await db.int(pause) == 60)
            }
            // The job is gone; maintenance brings it back.
            try await db.run(
                """
                select millrace.cancel(id) from millrace.jobs where kind = 'ai.forget' and state in ('scheduled', 'ready');
                update millrace.ai_leftover set since = since - interval '15 days', due_at = now() - interval '1 hour'; select millrace.ai_leftovers_check()
                """)
            try await bench.withWorker(onlyAnthropic: true) {
                try await eventually("it was tried again, and given up") {
                    try await db.bool("select max(tries) = 2 and max(due_at) is null from millrace.ai_leftover")
                }
            }
            #expect(try await AIAdmin.troubles(on: db, deadline: .ample).undeletedNames == ["anthropic msgbatch_0"])
            #expect(try await db.int("select millrace.ai_leftovers_check()") == 0)
            try await db.run("update millrace.ai_leftover set tried_at = tried_at - interval '31 days'")
            #expect(try await db.int("select millrace.ai_leftovers_check()") == 1)
        }
    }

    @Test func `a file of which no batch was made is deleted`() async throws {
        try await withAI { bench in
            try await bench.configureBatches(false)
            bench.fake.batches.set { ($0.most, $0.failedDeletions) = (0, 1) }
            try await bench.askLater("day")
            try await bench.gather()
            try await bench.withWorker {
                try await bench.ended(1)
                try await eventually("it was tried") {
                    try await bench.connection.bool("select max(tries) = 1 from millrace.ai_leftover")
                }
                #expect(bench.fake.batches.kept == ["file-0"])
                try await bench.forgetAgain()
                try await bench.forgotten()
            }
        }
    }

    @Test
    func
        `a run that was broken off before the end of its batch was recorded deletes nothing, and the next one ends it`()
        async throws
    {
        try await withAI { bench in
            try await bench.configureBatches(false)
            try await bench.askLater("day")
            try await bench.gather()
            // The end of the batch is not recorded at first.
            try await bench.connection.run(
                """
                create function public.refuse_end() returns trigger language plpgsql as $$ begin raise exception 'stopped here'; end $$;
                create trigger refuse_end before update on millrace.ai_batch for each row when (new.ended_at is not null) execute function public.refuse_end();
                """)
            try await bench.withWorker { try await bench.ended(1) }
            #expect(bench.fake.batches.kept == ["batch_0", "file-0"])
            try await bench.connection.run("drop trigger refuse_end on millrace.ai_batch")
            try await bench.hurry()
            try await bench.withWorker {
                try await bench.settled()
                try await bench.forgotten()
            }
            #expect(try await bench.connection.value("select status from millrace.ai_batch") == "ended")
            let told = bench.fake.told
            #expect(try await bench.used() == told.tokensIn + told.tokensOut && told.calls == 1)
        }
    }

    @Test func `a batch whose answer was lost is found again, and not sent twice`() async throws {
        try await withAI { bench in
            try await bench.configureBatches(false)
            bench.fake.batches.set { $0.lostAnswers = 1 }
            for n in 0..<5 { try await bench.askLater("day \(n)") }
            try await bench.gather()
            try await bench.withWorker {
                try await bench.ended(5)
                try await bench.settled()
            }
            #expect(bench.fake.batches.count == 1)
            let told = bench.fake.told
            #expect(try await bench.used() == told.tokensIn + told.tokensOut && told.calls == 5)
        }
    }

    @Test func `where a lost batch cannot be found its questions are asked again, and its tokens count as reserved`()
        async throws
    {
        try await withAI { bench in
            try await bench.configureBatches(true)
            bench.fake.batches.set { $0.lostAnswers = 1 }
            for n in 0..<5 { try await bench.askLater("day \(n)") }
            try await bench.gather()
            try await bench.withWorker(onlyAnthropic: true) {
                try await bench.ended(5)
                try await bench.settled()
            }
            #expect(try await bench.count("status = 'answered'") == 5)
            #expect(try await bench.connection.value("select status from millrace.ai_batch") == "lost")
            let told = bench.fake.told
            let reserved = try await bench.connection.int(
                "select sum(reserved) from millrace.ai_call where outcome = 'unknown'")
            #expect(reserved > 0)
            #expect(try await bench.used() == told.tokensIn + told.tokensOut + reserved)
        }
    }

    @Test(arguments: [false, true])
    func `a worker that stops after it has sent and before it has recorded loses nothing`(
        anthropic: Bool
    ) async throws {
        try await withAI { bench in
            try await bench.configureBatches(anthropic)
            for n in 0..<5 { try await bench.askLater("day \(n)") }
            try await bench.gather()
            // What the first worker records after it has sent fails.
            try await bench.connection.run(
                """
                create function public.refuse_sent() returns trigger language plpgsql as $$ begin raise exception 'stopped here'; end $$;
                create trigger refuse_sent before update on millrace.ai_batch for each row when (new.status = 'sent') execute function public.refuse_sent();
                """)
            try await bench.withWorker(onlyAnthropic: anthropic) {
                try await eventually("the batch was sent") { bench.fake.batches.count == 1 }
            }
            #expect(try await bench.connection.value("select status from millrace.ai_batch") != "sent")
            try await bench.connection.run("drop trigger refuse_sent on millrace.ai_batch")
            try await bench.hurry()
            try await bench.withWorker(onlyAnthropic: anthropic) {
                try await bench.ended(5)
                try await bench.settled()
            }
            #expect(bench.fake.batches.count == 1)
            #expect(try await bench.count("status = 'answered'") == 5)
            let told = bench.fake.told
            let reserved = try await bench.connection.int(
                "select coalesce(sum(reserved), 0) from millrace.ai_call where outcome = 'unknown'")
            #expect((reserved > 0) == anthropic)
            #expect(try await bench.used() == told.tokensIn + told.tokensOut + reserved)
        }
    }

    @Test func `what is erased, cancelled or switched off while a batch is under way is not stored`() async throws {
        try await withAI { bench in
            try await bench.configureBatches(false)
            try await bench.configure("other")
            try await bench.configureBatches(false)
            bench.fake.batches.set { $0.looks = 1_000_000 }
            try await bench.askLater("erased", "'anna'")
            try await bench.askLater("cancelled")
            try await bench.ask("sentiment", #"{"text": "off"}"#, tenant: "other", #"null, '{"may_wait": true}'"#)
            try await bench.askLater("kept")
            try await bench.gather()
            try await bench.withWorker {
                try await eventually("the batch was sent") {
                    try await bench.connection.value("select status from millrace.ai_batch") == "sent"
                }
                try await bench.connection.run(
                    """
                    select millrace.person_erase('anna', actor => 'anna');
                    select millrace.cancel(job) from millrace.ai_question where input ->> 'text' = 'cancelled';
                    update millrace.ai_question set asked_at = asked_at - interval '1 minute'; select millrace.ai_check();
                    select millrace.ai_switch('tenant', 'other', false);
                    """)
                bench.fake.batches.set { $0.looks = 1 }
                try await bench.ended(3)
                try await bench.settled()
            }
            #expect(
                try await bench.connection.column(
                    "select (input ->> 'text') || ' ' || status from millrace.ai_question order by 1")
                    == ["cancelled failed", "kept answered", "off cancelled"])
            #expect(bench.fake.asked.count == 4)
            #expect(
                try await bench.connection.int("select count(*) from millrace.ai_question where answer is not null")
                    == 1)
            // The one that was cancelled did cost something.
            #expect(
                try await bench.connection.int(
                    "select tokens_in from millrace.ai_question where input ->> 'text' = 'cancelled'") > 0)
        }
    }

    @Test func `what a quota has no room for waits for the next batch, and is refused when nothing comes back`()
        async throws
    {
        try await withAI { bench in
            try await bench.configureBatches(false)
            try await bench.connection.run("select millrace.quota_set('shop', 'ai_tokens', 4000)")
            for n in 0..<12 { try await bench.askLater("day \(n)") }
            try await bench.gather()
            try await bench.withWorker {
                try await eventually("all have ended") {
                    try await bench.gather()
                    return try await bench.count("ended_at is not null") == 12
                }
                try await bench.settled()
            }
            let told = bench.fake.told
            #expect(bench.fake.batches.count > 1)
            #expect(try await bench.used() == told.tokensIn + told.tokensOut)
            #expect(told.tokensIn + told.tokensOut <= 4000)
            let answered = try await bench.count("status = 'answered'")
            #expect(answered == told.calls && answered > 2)
        }
    }

    @Test(arguments: [false, true])
    func `a batch that is refused or that nobody knows any more leads to the single way`(
        anthropic: Bool
    ) async throws {
        try await withAI { bench in
            try await bench.configureBatches(anthropic)
            bench.fake.batches.set { ($0.most, $0.looks) = (2, 1_000_000) }
            for n in 0..<3 { try await bench.askLater("refused \(n)") }
            try await bench.gather()
            try await bench.withWorker(onlyAnthropic: anthropic) {
                try await bench.ended(3)
                #expect(bench.fake.batches.count == 0)
                try await bench.askLater("gone")
                try await bench.gather()
                try await eventually("a batch was sent") { bench.fake.batches.count == 1 }
                bench.fake.batches.forget()
                try await bench.ended(4)
                try await bench.settled()
            }
            #expect(try await bench.count("status = 'answered'") == 4)
            #expect(
                try await bench.connection.column("select status from millrace.ai_batch order by opened_at")
                    == ["failed", "lost"])
            let told = bench.fake.told
            let reserved = try await bench.connection.int(
                "select reserved from millrace.ai_call where outcome = 'unknown'")
            #expect(try await bench.used() == told.tokensIn + told.tokensOut + reserved)
        }
    }

    @Test func `without batches a question that may wait is asked like any other`() async throws {
        try await withAI { bench in
            try await bench.configure()
            try await bench.askLater("now")
            try await bench.withWorker { try await bench.ended(1) }
            #expect(bench.fake.batches.count == 0 && bench.fake.asked.count == 1)
            try await bench.configureBatches(false)
            try await bench.askLater("later")
            #expect(try await bench.count("batch_of is not null") == 1)
            try await bench.connection.run("select millrace.ai_providers_tell('[]')")
            #expect(try await bench.count("batch_of is not null") == 0)
            try await bench.withWorker { try await bench.ended(2) }
            #expect(bench.fake.batches.count == 0 && bench.fake.asked.count == 2)
        }
    }
}
