import Faults
import FoundationEssentials
import JSON
import Listeners
import Postgres

extension GatewayService {
    /// All paths of the gateway. The listener's routes and the OpenAPI document are made from them.
    package var table: [GatewayRoute] {
        calls + files + document + SyncRoutes(database: database, turns: options.turns).table + options.routes
    }

    private var calls: [GatewayRoute] {
        let key = GatewayRoute.Parameter(
            "Idempotency-Key", .header,
            "1 to 128 printable characters. The same request with the same key is done once within a day.",
            schema: ["type": "string", "minLength": 1, "maxLength": 128])
        let calls = GatewayCalls(database: database, catalogue: catalogue, turns: options.turns)
        var call = GatewayRoute(
            .post, "/v1/rpc/{function}", "Calls a function",
            parameters: [GatewayRoute.Parameter("function", .path, "The function's name."), key],
            body: ["type": "object"], answers: [GatewayRoute.Answer(200, "What the function returns.")],
            limit: Self.mostOfBody
        ) { try await calls.call($0) }
        call.isOfFunctions = true
        return [
            call,
            GatewayRoute(
                .post, "/v1/batch", "Calls several functions in one transaction: all, or none", parameters: [key],
                body: [
                    "type": "object", "required": ["calls"], "additionalProperties": false,
                    "properties": [
                        "calls": [
                            "type": "array", "minItems": 1, "maxItems": .int(GatewayCalls.mostCalls),
                            "items": [
                                "type": "object", "required": ["function"], "additionalProperties": false,
                                "properties": ["function": ["type": "string"], "args": ["type": "object"]],
                            ],
                        ]
                    ],
                ],
                answers: [
                    GatewayRoute.Answer(
                        200, "What each function returns, in the order of the calls.",
                        schema: [
                            "type": "object", "required": ["results"],
                            "properties": ["results": ["type": "array", "items": [:]]],
                        ])
                ], limit: Self.mostOfBody
            ) { try await calls.batch($0) },
        ]
    }

    private var files: [GatewayRoute] {
        let database = database
        return [
            GatewayRoute(
                .get, "/v1/documents/{id}/file",
                "Redirects to a file of a document, by a link that is valid for an hour",
                parameters: [
                    GatewayRoute.Parameter(
                        "id", .path, "The document.", schema: ["type": "string", "format": "uuid"]),
                    GatewayRoute.Parameter(
                        "kind", .query, "Which file. Without it: pdf.",
                        schema: [
                            "type": "string",
                            "enum": ["original", "pdf", "preview", "report", "markdown", "hocr", "alto"],
                        ]),
                ], answers: [GatewayRoute.Answer(303, "The link is in Location.", type: nil)]
            ) { call in
                let id = call.request.parameter("id")
                guard UUID(uuidString: id) != nil else {
                    throw GatewayProblem(.notFound, "there is no such document", field: "id")
                }
                let kind = call.request.query("kind") ?? "pdf"
                let links = try await database.run(
                    [
                        Statement(
                            "select millrace.document_link(($1::text)::uuid, $2)", [.text(id), .text(kind)])
                    ], as: call.caller
                ) { _, row throws(PostgresError) in try row.string(0) }
                guard let link = links.first?.first else {
                    throw PostgresError.undecodable(column: 0, expected: "a link")
                }
                return Response(status: 303, headers: [Header("Location", link)])
            }
        ]
    }

    private var document: [GatewayRoute] {
        [
            GatewayRoute(
                open: "/v1/openapi.json", "This description",
                answers: [
                    GatewayRoute.Answer(200, "An OpenAPI 3.1 document.", schema: ["type": "object"]),
                    GatewayRoute.Answer(304, "It is the one whose ETag is in If-None-Match.", type: nil),
                ]
            ) { request in
                try await catalogue.description {
                    OpenAPI(table: table, doors: $0.doors, version: options.version).text
                }.response(to: request)
            },
            GatewayRoute(
                open: "/v1/errors", "What the classes of errors mean: where the type of a problem leads",
                answers: [GatewayRoute.Answer(200, "A page.", type: "text/html", schema: ["type": "string"])]
            ) { _ in .text(ErrorPage.text, type: "text/html; charset=utf-8") },
        ]
    }
}
