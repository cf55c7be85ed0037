import CommandKit
import JSON
import LoadKit
import Postgres
import Telemetry

/// Compares what was answered and what was paid with what the models wrote down.
struct QuestionJudge {
    let connection: Connection
    let figures: ModelServer.Figures
    let outcome: QuestionStorm.Outcome
    let count: Int
    let seed: Int
    let isPaced: Bool

    private struct Account {
        var tenant: String
        var used: Int
        /// What calls are known to have cost, and what was reserved for those of which nobody told.
        var known: Int
        var unknown: Int
    }

    func judge(console: Console) async throws -> ([Bar], [(String, JSONValue)]) {
        let answered = try await number("select count(*) from millrace.ai_question where status = 'answered'")
        let fromStore = try await number("select count(*) from millrace.ai_question where source is not null")
        let open = try await number("select count(*) from millrace.ai_question where ended_at is null")
        let strange = try await number(
            """
            select count(*) from millrace.ai_question
             where status = 'answered' and answer ->> 'summary' is distinct from 'about ' || substring(input ->> 'text' from '\\[\\[(.*)\\]\\]')
            """)
        let unanswered = try await number(
            "select count(*) from millrace.ai_question where status <> 'answered' and reason is distinct from 'quota'")
        let poor = try await number(
            "select count(*) from millrace.ai_question where reason = 'quota' and status = 'refused'")
        let twice = try await number(
            "select count(*) from (select from millrace.ai_question where status = 'answered' and source is null group by key having count(*) > 1) x"
        )
        let running = try await number("select count(*) from millrace.ai_call where outcome = 'running'")
        let accounts = try await accounts()
        var billed: [String: Int] = [:]
        for (mark, cost) in figures.told {
            billed[String(mark.prefix { $0 != "-" }), default: 0] += cost.tokensIn + cost.tokensOut
        }
        let wrong = accounts.filter { $0.used != $0.known + $0.unknown }.count
        let cheap = accounts.filter { $0.used < billed[$0.tenant] ?? 0 }.count
        let dear = accounts.filter { $0.known > billed[$0.tenant] ?? 0 }.count
        console.note(
            "\(Humane.count(outcome.asked)) questions asked, \(Humane.count(outcome.refused)) refused at once for their quota, \(Humane.count(poor)) later; "
                + "\(Humane.count(answered)) answered, \(Humane.count(fromStore)) of them from the store; "
                + "\(Humane.count(figures.calls)) calls in \(Humane.decimal(outcome.seconds, places: 0)) s, "
                + "\(outcome.kills) workers killed; seed \(seed)")
        console.note(
            "what the models did wrong: "
                + figures.faults.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }.joined(separator: ", "))
        console.note(
            "\(Humane.count(accounts.reduce(0) { $0 + $1.known })) tokens told by answers, and "
                + "\(Humane.count(accounts.reduce(0) { $0 + $1.unknown })) reserved for calls of which nobody told")
        var bars: [Bar] = [
            .atMost("questions that have not ended", 0, measured: Double(open), unit: ""),
            .atMost("questions without an answer, but for a quota", 0, measured: Double(unanswered), unit: ""),
            .atMost("answers that are another question's", 0, measured: Double(strange), unit: ""),
            .atMost("questions that were answered by two calls", 0, measured: Double(twice), unit: ""),
            .atMost("calls that nobody closed", 0, measured: Double(running), unit: ""),
            .atMost("tenants whose quota is not the sum of its calls", 0, measured: Double(wrong), unit: ""),
            .atMost("tenants that paid less than the models' books say", 0, measured: Double(cheap), unit: ""),
            .atMost("tenants whose answers cost more than these books say", 0, measured: Double(dear), unit: ""),
            .atLeast(
                "questions for which a quota did not reach", 1, measured: Double(poor + outcome.refused), unit: ""),
            .atMost("tokens above a quota, at any look", 0, measured: Double(outcome.above), unit: ""),
            .atLeast("workers killed", Double(max(2, count / 500)), measured: Double(outcome.kills), unit: ""),
            .atMost(
                "calls of a model that was down, before its breaker stopped them", 200,
                measured: Double(figures.whileDown), unit: ""),
        ]
        if isPaced {
            bars.append(
                .atMost(
                    "calls that the models found too many", 10,
                    measured: 100 * Double(figures.throttled) / Double(max(1, figures.calls)), unit: "%"))
        }
        return (
            bars,
            [
                ("questions", .int(outcome.asked)), ("refused_for_quota", .int(outcome.refused)),
                ("answered", .int(answered)), ("from_store", .int(fromStore)), ("calls", .int(figures.calls)),
                ("throttled", .int(figures.throttled)), ("seconds", .double(outcome.seconds)),
                ("kills", .int(outcome.kills)), ("seed", .int(seed)),
            ]
        )
    }

    private func number(_ select: SQL) async throws -> Int {
        try await connection.int(select, deadline: .seconds(120))
    }

    private func accounts() async throws -> [Account] {
        try await connection.query(
            """
            select q.tenant, ceil(q.used)::bigint, coalesce(sum(c.tokens_in + coalesce(c.tokens_out, 0)), 0)::bigint,
                   coalesce(sum(c.reserved) filter (where c.tokens_in is null), 0)::bigint
              from millrace.quota q left join millrace.ai_call c on c.account = q.tenant
             where q.name = 'ai_tokens' group by q.tenant, q.used
            """, deadline: .seconds(120)
        ) { row throws(PostgresError) in
            Account(
                tenant: try row.string(0), used: Int(try row.int(1)), known: Int(try row.int(2)),
                unknown: Int(try row.int(3)))
        }
    }
}
