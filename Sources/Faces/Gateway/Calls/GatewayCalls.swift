import Digests
import Faults
package import JSON
package import Listeners
import Postgres
import Threads

/// Calls of the functions that apps may call: one, or several in one transaction.
struct GatewayCalls: Sendable {
    let database: GatewayDatabase
    let catalogue: GatewayCatalogue
    let turns: GatewayTurns

    /// The most calls of a batch.
    static let mostCalls = 50

    /// One call of a batch, ready to run.
    private struct Prepared: Sendable {
        let function: String
        let arguments: [JSONValue.Member]
        let statement: Statement
    }

    func call(_ call: GatewayCall) async throws -> Response {
        let name = call.request.parameter("function")
        let door = try await door(name)
        let body = try await call.body()
        let arguments = try GatewayBody.object(body)
        try await call.charge(GatewayCost(operations: GatewayCost.operations(of: name, arguments)))
        let prepared = Prepared(
            function: name, arguments: arguments, statement: try GatewayValues.statement(door, arguments))
        return try await run([prepared], call, asked: arguments) { $0.first ?? "null" }
    }

    func batch(_ call: GatewayCall) async throws -> Response {
        let body = try await call.body()
        let members = try GatewayBody.object(body)
        if let unknown = members.first(where: { $0.key != "calls" }) {
            throw GatewayProblem(
                .invalid, "a batch has no member of that name", field: String(unknown.key.prefix(100)),
                hint: "it has calls")
        }
        guard let calls = members.first?.value.items, (1...Self.mostCalls).contains(calls.count) else {
            throw GatewayProblem(.invalid, "calls should be a list of 1 to \(Self.mostCalls) calls", field: "calls")
        }
        var prepared: [Prepared] = []
        for (index, each) in calls.enumerated() {
            do {
                prepared.append(try await prepare(each))
            } catch {
                throw Self.problem(error, index)
            }
        }
        try await call.charge(
            GatewayCost(
                calls: calls.count - 1,
                operations: prepared.reduce(0) { $0 + GatewayCost.operations(of: $1.function, $1.arguments) },
                functions: Dictionary(grouping: prepared, by: \.function).mapValues(\.count)))
        return try await run(prepared, call, asked: members) { "{\"results\":[\($0.joined(separator: ","))]}" }
    }

    private func prepare(_ call: JSONValue) async throws -> Prepared {
        guard case .object(let members) = call else {
            throw GatewayProblem(.invalid, "a call should be an object, and is \(call.word)", field: "calls")
        }
        if let unknown = members.first(where: { $0.key != "function" && $0.key != "args" }) {
            throw GatewayProblem(
                .invalid, "a call has no member of that name", field: String(unknown.key.prefix(100)),
                hint: "it has function and args")
        }
        guard let name = call["function"]?.text else {
            throw GatewayProblem(.invalid, "a call needs the name of a function", field: "function")
        }
        let door = try await door(name)
        let arguments: [JSONValue.Member]
        switch call["args"] {
        case nil: arguments = []
        case .object(let members)?: arguments = members
        case let other?: throw GatewayProblem(.invalid, "args should be an object, and is \(other.word)", field: "args")
        }
        return Prepared(
            function: name, arguments: arguments, statement: try GatewayValues.statement(door, arguments))
    }

    /// A function that is not there, and one that the clients' role may not call, are answered alike.
    private func door(_ name: String) async throws -> GatewayDoor {
        guard let door = try await catalogue.door(name) else {
            throw GatewayProblem(
                .notFound, "there is no function of that name", field: "function",
                hint: "/v1/openapi.json has all that there are")
        }
        return door
    }

    private func run(
        _ calls: [Prepared], _ call: GatewayCall, asked: [JSONValue.Member],
        answer: @escaping @Sendable ([String]) -> String
    ) async throws -> Response {
        let isBatch = call.request.path.hasSuffix("/batch")
        do {
            guard let key = try IdempotencyKey.of(call.request) else {
                return try await inTurn(calls, of: call.caller.subject) {
                    let texts = try await database.run(calls.map(\.statement), as: call.caller) {
                        _, row throws(PostgresError) in row.optionalString(0) ?? "null"
                    }
                    return Self.response(answer(texts.map { $0.first ?? "null" }))
                }
            }
            // A client that writes its request again may write it in another order, or with other spaces.
            let digest = SHA256Digest.of(
                Array(call.request.path.utf8) + [0] + Array(JSONValue.object(asked).canonical.utf8))
            // A second one would wait in the database, with a connection, until the first has ended.
            let once = try await turns.keys.withTurn(of: "\(call.caller.subject)\n\(key)") {
                try await inTurn(calls, of: call.caller.subject) {
                    try await database.once(
                        key, request: digest, calls.map(\.statement), as: call.caller, answer: answer)
                }
            }
            var response = Self.response(once.body, status: once.status)
            if once.isReplayed { response.headers.append(Header("Idempotent-Replayed", "true")) }
            return response
        } catch let failed as FailedStatement {
            if failed.error.sqlState == "42883" { catalogue.forget() }
            var problem = GatewayProblem(failed.error)
            guard calls.indices.contains(failed.index) else { throw problem }
            if isBatch { problem.index = failed.index }
            if problem.field == nil {
                problem.field = GatewayValues.unreadable(failed.error, among: calls[failed.index].arguments)
            }
            throw problem
        }
    }

    /// Calls that the database does one after the other for a person wait for that here.
    private func inTurn<Value: Sendable>(
        _ calls: [Prepared], of person: String, _ body: () async throws -> Value
    ) async throws -> Value {
        guard calls.contains(where: { SyncRoutes.takeTurns.contains($0.function) }) else { return try await body() }
        return try await turns.pushes.withTurn(of: person) { try await database.untilFree(body) }
    }

    private static func response(_ body: String, status: Int = 200) -> Response {
        Response(
            status: status, headers: [Header("Content-Type", "application/json")],
            body: .bytes(Array((body + "\n").utf8))
        )
    }

    private static func problem(_ error: any Error, _ index: Int) -> GatewayProblem {
        var problem = GatewayProblem(error)
        problem.index = index
        return problem
    }
}

/// The bodies that the gateway takes.
package enum GatewayBody {
    /// All of it, of a request whose type is JSON, or that has none.
    package static func read(_ request: Request) async throws -> [UInt8] {
        let type = (request.headers["Content-Type"] ?? "").prefix { $0 != ";" }.lowercased()
            .filter { $0 != " " && $0 != "\t" }
        let bytes = try await request.body.collect()
        guard type == "application/json" || type.isEmpty && bytes.isEmpty else {
            throw GatewayProblem(
                .unsupported, "the body should be JSON", field: "Content-Type",
                hint: "send the header Content-Type: application/json")
        }
        return bytes
    }

    /// The members of a body that is an object; none of an empty body. Strict: no key twice, nothing too deep.
    package static func object(_ bytes: [UInt8]) throws(GatewayProblem) -> [JSONValue.Member] {
        if bytes.isEmpty { return [] }
        let value: JSONValue
        do {
            var reader = JSONReader(bytes, rules: JSONReader.Rules(deepest: 64, allowsRepeatedKeys: false))
            value = try reader.document()
        } catch {
            throw GatewayProblem(error)
        }
        guard case .object(let members) = value else {
            throw GatewayProblem(.invalid, "the body should be an object, and is \(value.word)")
        }
        return members
    }
}

/// The header `Idempotency-Key`.
enum IdempotencyKey {
    static func of(_ request: Request) throws(GatewayProblem) -> String? {
        let given = request.headers.all("Idempotency-Key")
        guard let key = given.first else { return nil }
        guard given.count == 1, (1...128).contains(key.utf8.count), key.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else {
            throw GatewayProblem(
                .invalid, "the key should be 1 to 128 printable characters without spaces", field: "Idempotency-Key",
                hint: "send a new UUID for each thing that should happen once")
        }
        return key
    }
}
