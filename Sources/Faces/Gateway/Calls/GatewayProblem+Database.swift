import Faults
import FoundationEssentials
package import JSON
package import Listeners
package import Postgres
import Threads

extension GatewayProblem {
    /// What any error means for the app. What only an operator should read stays out of it.
    package init(_ error: any Error) {
        switch error {
        case let problem as GatewayProblem: self = problem
        case let answer as ErrorAnswer: self.init(answer)
        case let failed as FailedStatement: self.init(failed.error)
        case let error as PostgresError: self.init(error)
        case let problem as JSONProblem: self.init(problem)
        case is PoolShareTaken, is Turns.Refusal: self = .crowded("calls of this person")
        case is CancellationError: self.init(.unavailable, "the request was cancelled")
        default: self = .internal(because: error)
        }
    }

    static func `internal`(because error: any Error) -> GatewayProblem {
        var problem = GatewayProblem(.internal, "the server failed; its log says why")
        problem.cause = String(reflecting: error)
        return problem
    }

    /// What the listener or another room refused.
    package init(_ answer: ErrorAnswer) {
        self.init(
            ErrorClass(rawValue: answer.class.rawValue) ?? .internal, answer.message, field: answer.field,
            hint: answer.hint, status: answer.status)
        headers = headers.filter { answer.headers[$0.name] == nil } + answer.headers
        if answer.headers["Retry-After"] != nil { retryAfter = nil }
    }

    package init(_ problem: JSONProblem) {
        self.init(
            .invalid, "the body is not JSON at offset \(problem.offset): \(problem.complaint)",
            hint: "send one JSON object in UTF-8")
    }

    package init(_ error: PostgresError) {
        switch error {
        case .server(let server): self.init(server)
        case .unreachable: self.init(.unavailable, "the database cannot be reached now")
        case .exhausted: self.init(.unavailable, "all connections are busy now")
        case .lost:
            self.init(
                .unknown, "the connection to the database was lost, and this may have worked",
                hint: "try again with the same Idempotency-Key")
        case .timedOut:
            self.init(.timeout, "the database gave no answer in time", hint: "try again with the same Idempotency-Key")
        case .cancelled: self.init(.unavailable, "the request was cancelled")
        case .undecodable, .misconfigured: self = .internal(because: error)
        }
    }

    init(_ error: PostgresError.ServerError) {
        if let refused = Self.refusal(error) {
            self = refused
        } else if let known = Self.meaning(of: error) {
            self = known
        } else {
            self = .internal(because: PostgresError.server(error))
        }
    }

    /// A refusal of a door says its class itself, in its DETAIL.
    private static func refusal(_ error: PostgresError.ServerError) -> GatewayProblem? {
        guard let detail = error.detail, detail.hasPrefix("{"), let value = try? JSONValue.read(detail),
            let word = value["error"]?.text
        else { return nil }
        // A word that is no class, such as `wrong_state`, is of the class of its code; what it says is for the caller all the same.
        let kind = ErrorClass(rawValue: word) ?? meaning(of: error)?.class ?? .invalid
        var problem = GatewayProblem(kind, error.message, field: value["field"]?.text, hint: error.hint)
        if kind == .quota {
            problem.limit = value["limit"]?.compact
            problem.used = value["used"]?.compact
            problem.resetDate = value["reset_date"]?.compact
            problem.retryAfter = value["reset_date"]?.text.flatMap { Self.seconds(until: $0) }
        }
        return problem
    }

    /// Seconds until a time as Postgres writes it in JSON, at most a day. Nil if it is over, or is not a time.
    private static func seconds(until text: String) -> Int? {
        guard let time = RFC3339.date(text) else { return nil }
        let seconds = time.timeIntervalSinceNow.rounded(.up)
        return seconds > 0 ? Int(min(seconds, 86_400)) : nil
    }

    /// What Postgres or the app's own triggers say. Their sentences are for who wrote the trigger, but the names of tables and
    /// constraints are for nobody outside.
    private static func meaning(of error: PostgresError.ServerError) -> GatewayProblem? {
        switch error.sqlState {
        case "P0001": GatewayProblem(.invalid, error.message, hint: error.hint)
        case "P0002": GatewayProblem(.notFound, "there is no such thing")
        case "23505", "23P01": GatewayProblem(.conflict, "there is already one like this")
        case "23503":
            GatewayProblem(.conflict, "something that this refers to does not exist, or something still refers to this")
        case "23502": GatewayProblem(.invalid, "a value is missing")
        case "23514", "23000": GatewayProblem(.invalid, "a value is not one of those allowed")
        case "22P02", "22003", "22007", "22008", "22P03", "22021", "22P05":
            GatewayProblem(.invalid, "a value cannot be read: \(valueSentence(error))")
        case "54000", "54001": GatewayProblem(.tooLarge, "this is too large")
        case "53400": GatewayProblem(.tooLarge, error.message, hint: error.hint)
        case "55P03": GatewayProblem(.transient, "something else holds this now")
        case "55000": GatewayProblem(.conflict, "this cannot be done in its current state")
        case "57014": GatewayProblem(.timeout, "this took longer than the database allows")
        case "40001", "40P01": GatewayProblem(.transient, "two calls conflicted; nothing was done")
        case "42501": GatewayProblem(.permission, "this is not allowed")
        case "42883", "42P01", "3F000", "42703", "0A000":
            GatewayProblem(.unavailable, "the database has another version than this gateway", retryAfter: 10)
        case let state where state.hasPrefix("22"): GatewayProblem(.invalid, "a value cannot be used")
        case let state where PostgresError.server(error).outcomeUnknown && !state.hasPrefix("57"):
            GatewayProblem(PostgresError.lost(reason: ""))
        case _ where PostgresError.server(error).isOutage:
            GatewayProblem(.unavailable, "the database cannot be used now")
        default: nil
        }
    }

    /// Postgres' sentences about values that it cannot read say the type and the value that was sent, and nothing else.
    private static func valueSentence(_ error: PostgresError.ServerError) -> String {
        let known = [
            "invalid input syntax for type ", "date/time field value out of range", "value \"", "interval field value",
            "invalid byte sequence", "time zone ", "numeric field overflow", "integer out of range",
            "bigint out of range", "smallint out of range", "timestamp out of range", "interval out of range",
        ]
        return known.contains { error.message.hasPrefix($0) } ? String(error.message.prefix(200)) : "it is malformed"
    }
}
