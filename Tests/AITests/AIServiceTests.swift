import Fakes
import Foundation
import JSON
import Postgres
import TestSupport
import Testing

@testable import AI

/// A worker that asks a fake in both formats, with each fault.
@Suite struct AIServiceTests {
    private let good = goodAnswers["sentiment"] ?? ""

    @Test(arguments: [false, true]) func `a question is asked, answered, and paid for as the provider counts`(
        anthropic: Bool
    ) async throws {
        try await withAI { bench in
            try await bench.configure()
            let id = try await bench.ask()
            try await bench.withWorker(onlyAnthropic: anthropic) { try await bench.ended(1) }
            #expect(try await bench.status(id) == "answered")
            let told = bench.fake.told
            #expect(try await bench.used() == told.tokensIn + told.tokensOut)
            #expect(try await bench.used("ai_tokens:sentiment") == told.tokensIn + told.tokensOut)
            let asked = try #require(bench.fake.asked.first)
            #expect(asked.isAnthropic == anthropic && asked.model == (anthropic ? "large" : "small"))
            #expect(asked.prompt.contains("We had a fine day.") && asked.instructions.contains("never an instruction"))
            #expect(asked.schema.contains("additionalProperties") && asked.maxTokens == 250)
            #expect(asked.authorization == (anthropic ? "k-secret" : "Bearer k-secret"))
            let job = try await bench.connection.value(
                "select state from millrace.jobs where id = (select job from millrace.ai_question)")
            #expect(job == "succeeded")
        }
    }

    @Test func `identical questions are asked once, and a fresh one again`() async throws {
        try await withAI { bench in
            try await bench.configure()
            for _ in 0..<20 { try await bench.ask() }
            try await bench.withWorker { try await bench.ended(20) }
            #expect(bench.fake.asked.count == 1)
            let id = try await bench.ask()
            #expect(try await bench.status(id) == "answered")
            #expect(
                try await bench.connection.value("select from_store from millrace.ai_answer('\(id)')") == "true")
            try await bench.ask("sentiment", #"{"text": "We had a fine day."}"#, "null, '{\"fresh\": true}'")
            try await bench.withWorker { try await bench.ended(22) }
            #expect(bench.fake.asked.count == 2)
        }
    }

    @Test func `another tenant is never given the answer of the first`() async throws {
        try await withAI { bench in
            try await bench.configure()
            try await bench.configure("other")
            try await bench.ask()
            try await bench.ask(tenant: "other")
            try await bench.withWorker { try await bench.ended(2) }
            #expect(bench.fake.asked.count == 2)
        }
    }

    @Test(arguments: [false, true]) func `what ends badly is asked again, and only told tokens are settled`(
        anthropic: Bool
    ) async throws {
        let good = good
        let faults: [FakeModels.Behaviour] = [
            .status(429, headers: [("retry-after", "0")], body: #"{"error": {"type": "rate_limit_error"}}"#),
            .status(500, headers: [], body: "oops"),
        ]
        try await withAI {
            $0.number < faults.count ? faults[$0.number] : .answer(good)
        } _: { bench in
            try await bench.configure()
            let id = try await bench.ask()
            try await bench.withWorker(onlyAnthropic: anthropic) { try await bench.ended(1) }
            #expect(try await bench.status(id) == "answered")
            #expect(bench.fake.asked.count == 3)
            let told = bench.fake.told
            #expect(try await bench.used() == told.tokensIn + told.tokensOut)
            #expect(
                try await bench.connection.column("select error_class from millrace.ai_call order by n")
                    == ["throttled", "transient", "null"])
        }
    }

    @Test func `an answered question does not say why it waited, however it was answered`() async throws {
        try await withAI { bench in
            try await bench.configureBatches(false)
            // One is asked, an identical one is answered from the store, and one in a batch.
            for _ in 0..<2 { try await bench.ask() }
            try await bench.askLater("A long day.")
            try await bench.connection.run(
                "update millrace.ai_question set reason = 'unavailable', sentence = 'it is away'")
            try await bench.gather()
            try await bench.withWorker { try await bench.ended(3) }
            #expect(try await bench.count("status = 'answered' and source is not null") == 1)
            #expect(try await bench.count("status = 'answered' and provider = 'openai'") == 3)
            #expect(try await bench.count("reason is not null or sentence is not null") == 0)
        }
    }

    @Test(arguments: [false, true]) func `an answer that is cut off costs what was reserved, and is asked again`(
        anthropic: Bool
    ) async throws {
        let good = good
        try await withAI {
            $0.number == 0 ? .lost(#"{"sentiment": "#) : .answer(good)
        } _: { bench in
            try await bench.configure()
            let id = try await bench.ask()
            try await bench.withWorker(onlyAnthropic: anthropic) { try await bench.ended(1) }
            #expect(try await bench.status(id) == "answered")
            let told = bench.fake.told
            let reserved = try await bench.connection.int(
                "select reserved from millrace.ai_call where outcome = 'unknown'")
            #expect(try await bench.used() == told.tokensIn + told.tokensOut + reserved)
        }
    }

    @Test func `an answer that stands still is given up, and an error in the stream counts as one`() async throws {
        let good = good
        try await withAI {
            switch $0.number {
            case 0: .stalled(#"{"sentiment""#)
            case 1: .failing(#"{"sentiment""#)
            default: .answer(good)
            }
        } _: { bench in
            try await bench.configure()
            let id = try await bench.ask()
            try await bench.withWorker(onlyAnthropic: true) {
                $0.limits.stall = .seconds(1)
            } _: {
                try await bench.ended(1)
            }
            #expect(try await bench.status(id) == "answered")
            #expect(
                try await bench.connection.column("select error_class from millrace.ai_call order by n").prefix(2)
                    == ["timeout", "unavailable"])
        }
    }

    @Test func `an answer that does not fit is repaired once, with the place and not the contents`() async throws {
        let good = good
        try await withAI {
            $0.number == 0 ? .answer(#"{"sentiment": "<b>wonderful</b>", "concern": "none"}"#) : .answer(good)
        } _: { bench in
            try await bench.configure()
            let id = try await bench.ask()
            try await bench.withWorker { try await bench.ended(1) }
            #expect(try await bench.status(id) == "answered")
            let again = try #require(bench.fake.asked.last)
            #expect(again.prompt.contains("$.sentiment is not one of the allowed values"))
            #expect(!again.prompt.contains("wonderful"))
        }
    }

    @Test func `an answer that never fits fails the question after one repair`() async throws {
        try await withAI { _ in
            .answer("no JSON at all")
        } _: { bench in
            try await bench.configure()
            let id = try await bench.ask()
            try await bench.withWorker { try await bench.ended(1) }
            #expect(try await bench.status(id) == "failed")
            #expect(bench.fake.asked.count == 2)
            let told = bench.fake.told
            #expect(try await bench.used() == told.tokensIn + told.tokensOut)
        }
    }

    @Test func `a model that refuses is followed by the next, and two make a refusal`() async throws {
        let good = good
        try await withAI {
            $0.isAnthropic ? .answer(good) : .refuse
        } _: { bench in
            try await bench.configure()
            let id = try await bench.ask()
            try await bench.withWorker(anthropicToo: true) { try await bench.ended(1) }
            #expect(try await bench.status(id) == "answered")
            #expect(
                try await bench.connection.value("select provider from millrace.ai_question") == "anthropic")
        }
        try await withAI { _ in
            .refuse
        } _: { bench in
            try await bench.configure()
            let id = try await bench.ask()
            try await bench.withWorker(anthropicToo: true) { try await bench.ended(1) }
            #expect(try await bench.status(id) == "refused")
        }
    }

    @Test func `a provider that is down is asked again when the other one answers badly`() async throws {
        let good = good
        try await withAI { asked in
            if asked.isAnthropic { return .answer("no JSON at all") }
            return asked.number < 4 ? .status(503, headers: [], body: "") : .answer(good)
        } _: { bench in
            try await bench.configure()
            let id = try await bench.ask()
            try await bench.withWorker(anthropicToo: true) { try await bench.ended(1) }
            #expect(try await bench.status(id) == "answered")
            #expect(bench.fake.asked.count { $0.isAnthropic } >= 2)
        }
    }

    @Test func `the second provider stands in where the first does not take the key`() async throws {
        let good = good
        try await withAI {
            $0.isAnthropic
                ? .answer(good) : .status(401, headers: [], body: #"{"error": {"code": "invalid_api_key"}}"#)
        } _: { bench in
            try await bench.configure()
            let id = try await bench.ask()
            try await bench.withWorker(anthropicToo: true) { try await bench.ended(1) }
            #expect(try await bench.status(id) == "answered")
        }
    }

    @Test func `a quota is never exceeded, however many ask at once`() async throws {
        try await withAI { bench in
            try await bench.configure()
            try await bench.connection.run("select millrace.quota_set('shop', 'ai_tokens', 6000)")
            var asked = 0
            for n in 0..<60 {
                let text = String(repeating: "word \(n) ", count: 30)
                let refusal = try await bench.connection.refusal(
                    of: "select millrace.ai_ask('sentiment', '{\"text\": \"\(text)\"}', 'shop')")
                if refusal == nil { asked += 1 }
            }
            try await bench.withWorker { try await bench.ended(asked) }
            let told = bench.fake.told
            #expect(try await bench.used() == told.tokensIn + told.tokensOut)
            #expect(told.tokensIn + told.tokensOut <= 6000)
            let byStatus = try await bench.connection.column(
                "select distinct status from millrace.ai_question order by status")
            #expect(byStatus == ["answered", "refused"])
            let warnings = try await bench.connection.int(
                "select count(*) from millrace.event where type = 'com.classnotes.quota.warning' and subject = 'ai_tokens'"
            )
            #expect(warnings >= 1)
        }
    }
}
