import Faults
import JSON
import Listeners
import Postgres

/// The OpenAPI 3.1 document, made from the same table as the routes, and from the catalogue of functions.
struct OpenAPI: Sendable {
    let table: [GatewayRoute]
    let doors: [String: GatewayDoor]
    let version: String

    var text: String { value.compact + "\n" }

    var value: JSONValue {
        [
            "openapi": "3.1.0",
            "info": [
                "title": "Millrace", "version": .string(version),
                "description": .string(
                    "The API for apps. A function does what the database allows the token's person to do."),
                "license": ["name": "Apache License 2.0", "identifier": "Apache-2.0"],
            ],
            "servers": [["url": "/"]],
            "security": [["token": []]],
            "paths": .object(paths),
            "components": components,
        ]
    }

    private var paths: [JSONValue.Member] {
        var paths: [(path: String, operations: [JSONValue.Member])] = []
        func add(_ path: String, _ method: Listeners.Method, _ operation: JSONValue) {
            let member = JSONValue.Member(key: method.rawValue.lowercased(), value: operation)
            if let place = paths.firstIndex(where: { $0.path == path }) {
                paths[place].operations.append(member)
            } else {
                paths.append((path, [member]))
            }
        }
        for route in table where !route.isOfFunctions { add(route.path, route.method, operation(route)) }
        for route in table where route.isOfFunctions {
            for door in doors.values.sorted(by: { $0.name < $1.name }) {
                add("/v1/rpc/\(door.name)", route.method, operation(route, door))
            }
        }
        return paths.map { JSONValue.Member(key: $0.path, value: .object($0.operations)) }
    }

    // MARK: operations

    private func operation(_ route: GatewayRoute) -> JSONValue {
        var members: [JSONValue.Member] = []
        members.add("operationId", .string(Self.operationID(route)))
        members.add("summary", .string(route.summary))
        members += common(route, parameters: route.parameters)
        if let body = route.body { members.add("requestBody", Self.body(body, isRequired: true)) }
        members.add("responses", responses(route, route.answers))
        return .object(members)
    }

    private func operation(_ route: GatewayRoute, _ door: GatewayDoor) -> JSONValue {
        var members: [JSONValue.Member] = []
        members.add("operationId", .string("rpc.\(door.name)"))
        members.add("summary", .string("Calls \(door.name)"))
        if let comment = door.comment { members.add("description", .string(comment)) }
        members.add("tags", ["functions"])
        members += common(route, parameters: route.parameters.filter { $0.place != .path })
        let needed = door.arguments.filter(\.isRequired).map(\.name)
        var schema: [JSONValue.Member] = []
        schema.add("type", "object")
        schema.add("additionalProperties", false)
        schema.add(
            "properties",
            .object(
                door.arguments.map {
                    JSONValue.Member(
                        key: $0.name, value: Self.schema($0.type, isNullable: !$0.isRequired, words: $0.words))
                }))
        if !needed.isEmpty { schema.add("required", JSONValue(needed)) }
        members.add("requestBody", Self.body(.object(schema), isRequired: !needed.isEmpty))
        members.add(
            "responses",
            responses(route, [GatewayRoute.Answer(200, "What the function returns.", schema: Self.schema(door.result))])
        )
        return .object(members)
    }

    private func common(_ route: GatewayRoute, parameters: [GatewayRoute.Parameter]) -> [JSONValue.Member] {
        var members: [JSONValue.Member] = []
        if !parameters.isEmpty {
            members.add(
                "parameters",
                .array(
                    parameters.map { parameter in
                        [
                            "name": .string(parameter.name), "in": .string(parameter.place.rawValue),
                            "description": .string(parameter.about), "required": .bool(parameter.place == .path),
                            "schema": parameter.schema,
                        ]
                    }))
        }
        switch route.access {
        case .everyone: members.add("security", [])
        case .token: break
        case .tokenOrDevice: members.add("security", [["token": []], ["device": []]])
        }
        return members
    }

    private func responses(_ route: GatewayRoute, _ answers: [GatewayRoute.Answer]) -> JSONValue {
        var members = answers.map { answer in
            var response: [JSONValue.Member] = []
            response.add("description", .string(answer.about))
            if let type = answer.type {
                response.add("content", .object([JSONValue.Member(key: type, value: ["schema": answer.schema])]))
            }
            if answer.status == 303 {
                response.add("headers", ["Location": ["schema": ["type": "string", "format": "uri"]]])
            }
            return JSONValue.Member(key: String(answer.status), value: .object(response))
        }
        members.add("default", ["$ref": "#/components/responses/Problem"])
        return .object(members)
    }

    private static func body(_ schema: JSONValue, isRequired: Bool) -> JSONValue {
        ["required": .bool(isRequired), "content": ["application/json": ["schema": schema]]]
    }

    private static func operationID(_ route: GatewayRoute) -> String {
        let words = route.path.split(separator: "/").dropFirst().map { $0.filter { $0 != "{" && $0 != "}" } }
        return ([route.method.rawValue.lowercased()] + words).joined(separator: ".")
    }

    // MARK: components

    private var components: JSONValue {
        [
            "securitySchemes": [
                "token": ["type": "http", "scheme": "bearer", "bearerFormat": "JWT"],
                "device": [
                    "type": "apiKey", "in": "header", "name": "Authorization",
                    "description": "Device and the token of POST /v1/sync/devices, for /v1/sync alone.",
                ],
            ],
            "responses": [
                "Problem": [
                    "description": "What went wrong.",
                    "headers": [
                        "Retry-After": [
                            "description": "Seconds after which trying again can help.",
                            "schema": ["type": "integer"],
                        ]
                    ],
                    "content": ["application/problem+json": ["schema": ["$ref": "#/components/schemas/Problem"]]],
                ]
            ],
            "schemas": ["Problem": Self.problem],
        ]
    }

    private static var problem: JSONValue {
        [
            "type": "object",
            "required": ["type", "title", "status", "class", "detail", "user_message", "request_id"],
            "properties": [
                "type": [
                    "type": "string", "format": "uri-reference", "description": "Leads to a page about the class.",
                ],
                "title": ["type": "string"], "status": ["type": "integer"],
                "class": ["type": "string", "enum": JSONValue(ErrorClass.allCases.map(\.rawValue))],
                "detail": ["type": "string", "description": "What was wrong, for a developer."],
                "field": ["type": "string", "description": "The part of the request that was wrong."],
                "hint": ["type": "string", "description": "What to do about it."],
                "user_message": ["type": "string", "description": "The sentence for the app's user."],
                "limit": ["type": "number", "description": "Of a quota: how much is allowed."],
                "used": ["type": "number", "description": "Of a quota: how much is used."],
                "reset_date": [
                    "type": ["string", "null"], "format": "date-time",
                    "description": "Of a quota: when there is room again.",
                ],
                "index": ["type": "integer", "description": "Which call of a batch failed, from 0."],
                "request_id": ["type": "string"],
            ],
        ]
    }

    // MARK: schemas of the database's types

    private static func schema(_ type: SQLType, isNullable: Bool, words: [String] = []) -> JSONValue {
        if case .list(let plain) = type, !words.isEmpty {
            return [
                "type": isNullable ? ["array", "null"] : "array",
                "items": schema(.plain(plain), isNullable: false, words: words),
            ]
        }
        var members = schema(type).members
        if isNullable, let place = members.firstIndex(where: { $0.key == "type" }) {
            members[place] = JSONValue.Member(key: "type", value: [members[place].value, "null"])
        }
        if !words.isEmpty {
            members.add("enum", .array(words.map(JSONValue.string) + (isNullable ? [.null] : [])))
        }
        return .object(members)
    }

    private static func schema(_ type: SQLType) -> JSONValue {
        switch type {
        case .list(let plain): ["type": "array", "items": schema(.plain(plain))]
        case .plain(let plain):
            switch plain {
            case .text: ["type": "string"]
            case .uuid: ["type": "string", "format": "uuid"]
            case .boolean: ["type": "boolean"]
            case .smallint, .integer: ["type": "integer", "format": "int32"]
            case .bigint: ["type": "integer", "format": "int64"]
            case .numeric, .real, .double: ["type": "number"]
            case .date: ["type": "string", "format": "date"]
            case .timestamp: ["type": "string", "format": "date-time"]
            case .time: ["type": "string", "description": "A time of day, such as 22:00:00."]
            case .interval: ["type": "string", "description": "A span of time, such as 01:30:00 or 90 minutes."]
            case .bytea: ["type": "string", "description": "Bytes, such as \\x00ff."]
            case .jsonb, .json: [:]
            }
        }
    }

    private static func schema(_ result: GatewayDoor.Result) -> JSONValue {
        switch result {
        case .nothing: ["type": "null"]
        case .value(let type): schema(ofResult: type)
        case .row(let columns): object(columns)
        case .rows(let columns): ["type": "array", "items": object(columns)]
        case .values(let type): ["type": "array", "items": schema(ofResult: type)]
        }
    }

    private static func object(_ columns: [GatewayDoor.Column]) -> JSONValue {
        [
            "type": "object",
            "properties": .object(
                columns.map { JSONValue.Member(key: $0.name, value: schema(ofResult: $0.type, words: $0.words)) }),
        ]
    }

    /// A type that no call is made with may well be a result: it can be anything.
    private static func schema(ofResult type: String, words: [String] = []) -> JSONValue {
        SQLType(type).map { schema($0, isNullable: words.isEmpty, words: words) } ?? [:]
    }
}

extension JSONValue {
    fileprivate var members: [Member] {
        guard case .object(let members) = self else { return [] }
        return members
    }
}

extension [JSONValue.Member] {
    fileprivate mutating func add(_ key: String, _ value: JSONValue) {
        append(JSONValue.Member(key: key, value: value))
    }
}
