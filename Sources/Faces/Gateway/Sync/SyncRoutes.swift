import Faults
import JSON
import Listeners
import Postgres
import Threads

/// The offline intake over HTTP. The doors decide; here are only its paths.
package struct SyncRoutes: Sendable {
    let database: GatewayDatabase
    let turns: GatewayTurns

    package init(database: GatewayDatabase, turns: GatewayTurns) {
        (self.database, self.turns) = (database, turns)
    }

    /// Functions that take operations.
    static let pushes: Set = ["sync_push", "sync_push_text"]
    /// Functions that the database does one after the other for a person.
    static let takeTurns = pushes.union(["sync_device_add"])

    /// What became of one operation.
    private static let outcome: JSONValue = [
        "type": "object", "required": ["outcome"],
        "properties": [
            "id": ["type": "string", "format": "uuid"],
            "outcome": ["type": "string", "enum": ["applied", "same", "conflict", "refused"]],
            "class": ["type": "string", "enum": JSONValue(ErrorClass.allCases.map(\.rawValue))],
            "field": ["type": "string"], "message": ["type": "string"], "hint": ["type": "string"],
            "user_message": ["type": "string"], "result": [:],
        ],
    ]

    /// What a push may take, as `sync_push` says itself, and a little around it.
    static let mostOfPush = (4 << 20) + 65_536
    static let mostEvents = 500
    static let mostOperations = 500

    package var table: [GatewayRoute] { [push, pull, devices, add, remove] }

    private var push: GatewayRoute {
        GatewayRoute(
            .post, "/v1/sync", "Accepts what a device has stored while it was offline", access: .tokenOrDevice,
            body: [
                "type": "object", "required": ["device", "ops"], "additionalProperties": false,
                "properties": [
                    "device": ["type": "string"],
                    "ops": [
                        "type": "array", "minItems": 1, "maxItems": 500,
                        "items": [
                            "type": "object", "required": ["id", "op", "at"],
                            "properties": [
                                "id": ["type": "string", "format": "uuid"], "op": ["type": "string"],
                                "at": ["type": "string", "format": "date-time"], "args": ["type": "object"],
                            ],
                        ],
                    ],
                ],
            ],
            answers: [
                GatewayRoute.Answer(
                    200, "What became of each operation: applied, same, conflict or refused.",
                    schema: [
                        "type": "object", "required": ["results"],
                        "properties": ["results": ["type": "array", "items": Self.outcome]],
                    ])
            ], limit: Self.mostOfPush
        ) { call in
            let seat: Seat
            do throws(Seats.Refusal) {
                seat = try turns.pushBodies.take(call.caller.subject)
            } catch {
                throw GatewayProblem.crowded("pushes of this person")
            }
            defer { seat.leave() }
            let bytes = try await call.body()
            // What a device hands in is read when those before it are done, and not while they are.
            return try await turns.pushes.withTurn(of: call.caller.subject) { try await take(bytes, call) }
        }
    }

    private func take(_ bytes: [UInt8], _ call: GatewayCall) async throws -> Response {
        let body = try SyncBody(bytes)
        let device = try Self.device(body.device)
        try await call.charge(GatewayCost(operations: body.count))
        // As text: an operation that jsonb cannot hold is refused alone, and holds nothing back.
        let statement = Statement(
            """
            select jsonb_build_object('results', coalesce(jsonb_agg(
                       jsonb_strip_nulls(to_jsonb(s) - 'result' - 'n') || case when s.result is null then '{}' else jsonb_build_object('result', s.result) end
                       order by s.n), '[]'))::text
              from millrace.sync_push_text($1, $2) with ordinality s(id, outcome, class, field, message, hint, user_message, result, n)
            """, [.text(device), .text(body.ops)])
        return try await database.untilFree { try await one(statement, call) }
    }

    private var pull: GatewayRoute {
        GatewayRoute(
            .get, "/v1/sync", "Gives what has changed since a position", access: .tokenOrDevice,
            parameters: [
                GatewayRoute.Parameter(
                    "since", .query, "The position of the last pull; 0 for everything that is kept.",
                    schema: ["type": "integer", "minimum": 0]),
                GatewayRoute.Parameter(
                    "limit", .query, "The maximum number of events.",
                    schema: ["type": "integer", "minimum": 1, "maximum": 500]),
            ],
            answers: [
                GatewayRoute.Answer(
                    200, "The events, the position to ask from next, and whether more wait.",
                    schema: [
                        "type": "object",
                        "properties": [
                            "events": ["type": "array", "items": ["type": "object"]], "position": ["type": "integer"],
                            "more": ["type": "boolean"], "reset": ["type": "boolean"],
                        ],
                    ])
            ]
        ) { call in
            let since = try Self.number(call.request.query("since"), "since", 0...Int64.max) ?? 0
            let limit = try Self.number(call.request.query("limit"), "limit", 1...Int64(Self.mostEvents)) ?? 500
            // `newest` is no place to read from: it may be ahead of what can be seen.
            // A number that was never given out comes from before a restore of the database: then everything that is kept is told again.
            let answers = try await database.run(
                [
                    Statement(
                        "select jsonb_build_array(p.oldest, p.newest < $1)::text from millrace.feed_position() p",
                        [.int8(since)]),
                    Statement(
                        """
                        select coalesce(jsonb_agg(jsonb_build_object('seq', f.seq, 'at', f.at, 'topic', f.topic, 'ref', f.ref, 'change', f.change, 'data', f.data) order by f.seq), '[]')::text
                          from (select case when p.newest < $1 then 0 when $1 > 0 then greatest($1, p.oldest) else $1 end as since from millrace.feed_position() p) s
                          cross join lateral millrace.sync_pull(s.since, $2) f
                        """, [.int8(since), .int4(Int32(limit))]),
                ], as: call.caller
            ) { _, row throws(PostgresError) in try row.string(0) }
            let place = try JSONValue.read(answers[0].first ?? "[]")
            let events = try JSONValue.read(answers[1].first ?? "[]")
            let oldest = place.items?.first?.integer ?? 0
            let isRestored = place.items?.last == .bool(true)
            let last = events.items?.last?["seq"]?.integer
            let hasMore = events.items?.count == Int(limit)
            let reached = max(oldest, last ?? (isRestored ? 0 : Int(since)))
            let position = hasMore ? last ?? reached : reached
            return Self.json([
                "events": events, "position": .int(position), "more": .bool(hasMore),
                "reset": .bool(since > 0 && since < Int64(oldest) || isRestored),
            ])
        }
    }

    private var devices: GatewayRoute {
        GatewayRoute(
            .get, "/v1/sync/devices", "Lists the person's devices that have a token",
            answers: [GatewayRoute.Answer(200, "The devices.", schema: ["type": "array", "items": ["type": "object"]])]
        ) { call in
            try await one(
                Statement("select coalesce(jsonb_agg(to_jsonb(d)), '[]')::text from millrace.sync_devices() d"), call)
        }
    }

    private var add: GatewayRoute {
        GatewayRoute(
            .post, "/v1/sync/devices", "Gives a device its own token, which is valid for 90 days after each use",
            body: [
                "type": "object", "required": ["device"], "additionalProperties": false,
                "properties": ["device": ["type": "string"], "name": ["type": "string"]],
            ],
            answers: [
                GatewayRoute.Answer(
                    200, "The token, which is shown only once.",
                    schema: ["type": "object", "properties": ["token": ["type": "string"]]])
            ]
        ) { call in
            let body = JSONValue.object(try GatewayBody.object(try await call.body()))
            let device = try Self.device(body["device"])
            let statement = Statement(
                "select jsonb_build_object('token', millrace.sync_device_add($1, $2))::text",
                [.text(device), .text(body["name"]?.text)])
            return try await turns.pushes.withTurn(of: call.caller.subject) {
                try await database.untilFree { try await one(statement, call) }
            }
        }
    }

    private var remove: GatewayRoute {
        GatewayRoute(
            .delete, "/v1/sync/devices/{device}", "Removes a device's token", access: .tokenOrDevice,
            parameters: [GatewayRoute.Parameter("device", .path, "The device.")],
            answers: [GatewayRoute.Answer(204, "It no longer has one.", type: nil)]
        ) { call in
            _ = try await one(
                Statement("select millrace.sync_device_remove($1)::text", [.text(call.request.parameter("device"))]),
                call)
            return Response(status: 204)
        }
    }

    /// One row with one JSON text.
    private func one(_ statement: Statement, _ call: GatewayCall) async throws -> Response {
        let texts = try await database.run([statement], as: call.caller) { _, row throws(PostgresError) in
            row.optionalString(0) ?? "null"
        }
        return .json((texts.first?.first ?? "null") + "\n")
    }

    private static func json(_ value: JSONValue) -> Response { .json(value.compact + "\n") }

    private static func device(_ value: JSONValue?) throws(GatewayProblem) -> String {
        guard let device = value?.text else {
            throw GatewayProblem(
                .invalid, "the name of the device is missing", field: "device",
                hint: "give each installation of the app its own name, such as a UUID, and keep it")
        }
        return device
    }

    private static func number(
        _ text: String?, _ field: String, _ range: ClosedRange<Int64>
    ) throws(GatewayProblem) -> Int64? {
        guard let text else { return nil }
        guard let number = Int64(text), range.contains(number) else {
            throw GatewayProblem(
                .invalid, "\(field) should be a whole number from \(range.lowerBound) to \(range.upperBound)",
                field: field)
        }
        return number
    }
}
