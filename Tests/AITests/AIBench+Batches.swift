import Fakes
import Postgres
import TestSupport
import Testing

extension AIBench {
    /// The first provider has batches, and is the one of this format.
    func configureBatches(_ anthropic: Bool) async throws {
        let name = anthropic ? "anthropic" : "openai"
        try await configure()
        try await connection.run(
            "select millrace.ai_providers_tell('[{\"name\": \"\(name)\", \"wire\": \"\(name)\", \"model\": \"m\", \"batches\": true}]')"
        )
    }

    func askLater(_ text: String, _ actor: String = "null") async throws {
        try await ask("sentiment", "{\"text\": \"\(text)\"}", "\(actor), '{\"may_wait\": true}'")
    }

    /// Gathers now what waits, without the pause.
    func gather() async throws {
        try await connection.run(
            "select millrace.reschedule(id, now()) from millrace.jobs where state = 'scheduled' and kind = 'ai.batch' and args ? 'provider'"
        )
    }

    /// Jobs of batches that wait to be tried again run now.
    func hurry() async throws {
        try await connection.run(
            "select millrace.reschedule(id, now()) from millrace.jobs where state in ('scheduled', 'retrying') and kind = 'ai.batch'"
        )
    }

    /// What could not be deleted at the provider is tried again now.
    func forgetAgain() async throws {
        try await connection.run(
            """
            update millrace.ai_leftover set due_at = now() where due_at > now();
            select millrace.ai_forget_enqueue(l.provider) from (select distinct provider from millrace.ai_leftover where due_at is not null) l
            """)
    }

    /// Nothing is left to delete, and nothing is there. A deletion that has failed meanwhile is hurried, too.
    func forgotten() async throws {
        try await eventually("all was deleted; the provider has \(fake.batches.kept)") {
            try await forgetAgain()
            return try await connection.int("select count(*) from millrace.ai_leftover") == 0
        }
        #expect(fake.batches.kept == [])
    }

    func count(_ condition: String) async throws -> Int {
        try await connection.int("select count(*) from millrace.ai_question where \(condition)")
    }

    /// All batches have ended, and no call is open.
    func settled() async throws {
        try await eventually("all batches have ended") {
            try await connection.int(
                "select (select count(*) from millrace.ai_batch where ended_at is null) + (select count(*) from millrace.ai_call where outcome = 'running')"
            ) == 0
        }
    }
}
