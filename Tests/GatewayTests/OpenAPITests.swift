import Foundation
import JSON
import Postgres
import TestSupport
import Testing

@testable import Gateway

/// The description of all paths.
@Suite(.timeLimit(.minutes(10))) struct OpenAPITests {
    @Test
    func `the document describes each function that the clients' role may call, and follows the rules of OpenAPI`()
        async throws
    {
        try await GatewayWorld.with(.init(script: CallTests.kinds)) { world in
            let answer = try await world.ask("GET", "/v1/openapi.json", as: nil)
            #expect(answer.status == 200 && answer.header("content-type") == "application/json")
            let document = answer.json
            #expect(document["openapi"]?.text == "3.1.0" && document["info"]?["version"]?.text == "1.2.3")
            let doors = try await world.owner.column("select name from millrace.gateway_doors('\(world.role)')")
            let paths = try #require(document["paths"])
            for door in doors { #expect(paths["/v1/rpc/\(door)"]?["post"] != nil, "\(door)") }
            #expect(doors.contains("check_in") && doors.count > 60)
            guard case .object(let members) = paths else { return #expect(Bool(false), "paths is no object") }
            if let place = ProcessInfo.processInfo.environment["OPENAPI_OUT"] {  // for deploy/checks/openapi
                try answer.text.write(toFile: place, atomically: true, encoding: .utf8)
            }
            #expect(members.count { $0.key.hasPrefix("/v1/rpc/") } == doors.count)
            var rules = OpenAPIRules(document: document)
            rules.check()
            #expect(rules.problems == [])
            let types = paths["/v1/rpc/kind_types"]?["post"]?["requestBody"]?["content"]?["application/json"]?["schema"]
            #expect(types?["properties"]?["u"]?["format"]?.text == "uuid")
            #expect(types?["properties"]?["ints"]?["items"]?["format"]?.text == "int32")
            #expect(types?["required"]?.items?.count == 12 && types?["additionalProperties"] == .bool(false))
            let rows = paths["/v1/rpc/kind_rows"]?["post"]?["responses"]?["200"]?["content"]?["application/json"]?[
                "schema"]
            #expect(rows?["items"]?["properties"]?["at"]?["format"]?.text == "date-time")
            let open = paths["/v1/openapi.json"]?["get"]?["security"]
            #expect(open == .array([]))
        }
    }

    @Test func `the document is sent once to who keeps it, and packed to who reads that`() async throws {
        try await GatewayWorld.with { world in
            func get(_ headers: [String: String] = [:]) async throws -> GatewayWorld.Answer {
                try await world.ask("GET", "/v1/openapi.json", as: nil, headers: headers)
            }
            let plain = try await get()
            let tag = try #require(plain.header("etag"))
            #expect(tag.hasPrefix("\"") && tag.hasSuffix("\"") && plain.header("content-encoding") == nil)
            #expect(plain.header("cache-control") == "no-cache")
            for known in [tag, "\"x\", \(tag)", "W/\(tag)", "*"] {
                let again = try await get(["If-None-Match": known])
                #expect(again.status == 304 && again.text.isEmpty && again.header("etag") == tag, "\(known)")
            }
            #expect(try await get(["If-None-Match": "\"other\""]).status == 200)
            for refusing in ["identity", "gzip;q=0", "br"] {
                #expect(try await get(["Accept-Encoding": refusing]).header("content-encoding") == nil, "\(refusing)")
            }
            let packed = try await get(["Accept-Encoding": "br, gzip;q=0.5"])
            #expect(packed.header("content-encoding") == "gzip" && packed.header("etag") != tag)
            #expect(Int(packed.header("content-length") ?? "").map { $0 < plain.text.utf8.count / 5 } == true)
            let address = "http://127.0.0.1:\(world.port)/v1/openapi.json"
            let unpacked = try await Program.run("curl", ["-sS", "--compressed", address])
            #expect(unpacked.text == plain.text)
            // Another edition has another tag.
            try await world.owner.run(Self.addedLater)
            try await world.service.catalogue.refresh()
            #expect(try await get(["If-None-Match": tag]).status == 200)
        }
    }

    @Test func `where an argument is one of some words, the document has them, and the function takes those alone`()
        async throws
    {
        try await GatewayWorld.with { world in
            let paths = try #require(try await world.ask("GET", "/v1/openapi.json", as: nil).json["paths"])
            func schema(_ door: String) -> JSONValue? {
                paths["/v1/rpc/\(door)"]?["post"]?["requestBody"]?["content"]?["application/json"]?["schema"]
            }
            let rows = try await world.owner.column(
                "select concat_ws('|', d.name, w.key, w.value) from millrace.door d cross join lateral jsonb_each(d.words) w order by 1"
            )
            #expect(rows.count > 15)
            try await world.owner.run(
                "select millrace.grant_enqueue('\(world.role)', 'document.receive', 'documents')")
            let document = try await world.call(
                "document_register", #"{"storage_url": "https://a.example/1", "title": "one"}"#)
            #expect(document.status == 200, "\(document.text)")
            try await world.owner.run("select millrace.subscription_plan_set('x', '{}')")
            // What these look at before the word.
            let tomorrow = Date(timeIntervalSinceNow: 86_400).formatted(.iso8601)
            let first = [
                "document_retry": ["id": document.json.compact],
                "mail_send": ["subject": "\"x\"", "body_text": "\"x\""],
                "own_notice_schedule": ["at": JSONText.quoted(tomorrow)], "subscription_set": ["person": "\"ada\""],
            ]
            for row in rows {
                let parts = row.split(separator: "|", maxSplits: 2).map(String.init)
                let words = try JSONValue.read(parts[2]).items?.compactMap(\.text) ?? []
                let (door, field) = (parts[0], parts[1])
                let found = schema(door)?["properties"]?[field]
                let known = found?["enum"] ?? found?["items"]?["enum"]
                #expect(known?.items?.compactMap(\.text) == words, "\(row)")
                for word in words + ["no such word"] {
                    let body = Self.body(schema(door), field, word, first[door] ?? [:])
                    let answer =
                        if door.hasPrefix("subscription_") {  // which back ends alone may call
                            try await Self.refusal(of: door, body, world)
                        } else {
                            try await world.call(door, body).json
                        }
                    let isRefused = answer["field"]?.text == field && answer["class"]?.text == "invalid"
                    // A list of documents of another status is an empty one.
                    #expect(
                        isRefused == (word == "no such word" && door != "document_list"),
                        "\(row) \(word): \(answer.compact)")
                }
            }
            let outcome = paths["/v1/rpc/sync_push"]?["post"]?["responses"]?["200"]?["content"]?["application/json"]?[
                "schema"]?["items"]?["properties"]?["outcome"]
            #expect(outcome?["enum"] == ["applied", "same", "conflict", "refused"])
        }
    }

    /// The least that a function takes, and this.
    private static func body(
        _ schema: JSONValue?, _ field: String, _ word: String, _ first: [String: String]
    ) -> String {
        var members = first
        for name in (schema?["required"]?.items ?? []).compactMap(\.text) where members[name] == nil {
            let type = schema?["properties"]?[name]
            members[name] =
                switch (type?["type"]?.text, type?["format"]?.text) {
                case ("string"?, "uuid"?): "\"00000000-0000-4000-8000-000000000000\""
                case ("string"?, "date-time"?): "\"2030-01-31T12:00:00Z\""
                case ("boolean"?, _): "true"
                case ("array"?, _): "[\"a@example.com\"]"
                case ("integer"?, _): "1"
                case (nil, _): "{}"
                default:
                    ["person", "contact"].contains(name)
                        ? "\"ada\"" : name == "token" ? "\"0123456789abcdef\"" : "\"x\""
                }
        }
        let isList = schema?["properties"]?[field]?["items"] != nil
        members[field] = isList ? "[\(JSONText.quoted(word))]" : JSONText.quoted(word)
        return JSONText.object(members.map { ($0.key, $0.value) })
    }

    /// What a back end hears, in the words of the gateway.
    private static func refusal(of door: String, _ body: String, _ world: GatewayWorld) async throws -> JSONValue {
        guard case .object(let members) = try JSONValue.read(body) else { return .null }
        let arguments = members.map { "\($0.key) => '\($0.value.text ?? "")'" }
        let call = "select millrace.\(door)(\(arguments.joined(separator: ", ")))"
        let detail = try await world.owner.refusal(of: call)?.detail ?? "{}"
        let told = try JSONValue.read(detail)
        return ["field": told["field"] ?? .null, "class": told["error"] ?? .null]
    }

    private static let addedLater = """
        create function millrace.added_later() returns int language sql as 'select 1';
        select millrace.door_is('tests', 'added_later', 'client', 'open', 'Comes later.')
        """

    @Test func `the document follows the schema`() async throws {
        try await GatewayWorld.with { world in
            func has(_ name: String) async throws -> Bool {
                try await world.service.catalogue.refresh()
                return try await world.ask("GET", "/v1/openapi.json", as: nil).json["paths"]?["/v1/rpc/\(name)"] != nil
            }
            #expect(try await !has("added_later"))
            try await world.owner.run(Self.addedLater)
            #expect(try await has("added_later"))
            #expect(try await world.call("added_later").text == "1\n")
            try await world.owner.run("revoke all on function millrace.added_later() from public")
            #expect(try await world.call("added_later").status == 403)
            #expect(try await !has("added_later"))
            #expect(try await world.call("added_later").status == 404)
            try await world.owner.run(
                "drop function millrace.check_in(text, timestamptz, text, jsonb, millrace.caller_name)")
            #expect(try await world.call("check_in", #"{"person": "ada"}"#).status == 503)
            #expect(try await world.call("check_in", #"{"person": "ada"}"#).status == 404)
        }
    }
}

/// What the specification demands of a document, as far as ours uses it.
struct OpenAPIRules {
    let document: JSONValue
    private(set) var problems: [String] = []
    private var operations: Set<String> = []

    init(document: JSONValue) { self.document = document }

    mutating func check() {
        need(document["info"]?["title"]?.text != nil, "info has no title")
        for path in members(document["paths"]) {
            need(path.key.hasPrefix("/"), "\(path.key) does not begin with a slash")
            for operation in members(path.value) {
                need(
                    ["get", "put", "post", "delete", "patch", "head", "options"].contains(operation.key),
                    "\(path.key) has \(operation.key)")
                check(operation.value, path.key, operation.key)
            }
        }
        references(document, at: "")
        for security in members(document["components"]?["securitySchemes"]) {
            need(
                ["http", "apiKey"].contains(security.value["type"]?.text ?? ""), "\(security.key) is of an unknown type"
            )
        }
    }

    private mutating func check(_ operation: JSONValue, _ path: String, _ method: String) {
        let place = "\(method) \(path)"
        let id = operation["operationId"]?.text ?? ""
        need(!id.isEmpty && operations.insert(id).inserted, "\(place) has no operationId of its own")
        let responses = members(operation["responses"])
        need(!responses.isEmpty, "\(place) has no responses")
        for response in responses {
            need(
                response.key == "default" || (response.key.count == 3 && Int(response.key) != nil),
                "\(place) has the response \(response.key)")
            need(
                response.value["description"]?.text != nil || response.value["$ref"] != nil,
                "\(place) \(response.key) has no description")
            for content in members(response.value["content"]) {
                need(content.key.contains("/"), "\(place) answers with \(content.key)")
                schema(content.value["schema"] ?? [:], place)
            }
        }
        var named: Set<String> = []
        for parameter in operation["parameters"]?.items ?? [] {
            let name = parameter["name"]?.text ?? ""
            let kind = parameter["in"]?.text ?? ""
            need(["path", "query", "header"].contains(kind), "\(place): \(name) is in \(kind)")
            need(named.insert("\(kind) \(name)").inserted, "\(place): \(name) stands there twice")
            need(kind != "path" || parameter["required"] == .bool(true), "\(place): \(name) is not required")
            schema(parameter["schema"] ?? .null, place)
        }
        for part in path.split(separator: "/") where part.hasPrefix("{") {
            need(named.contains("path \(part.dropFirst().dropLast())"), "\(place) does not describe \(part)")
        }
        if let body = operation["requestBody"] {
            need(!members(body["content"]).isEmpty, "\(place) has a body without content")
            for content in members(body["content"]) { schema(content.value["schema"] ?? .null, place) }
        }
        for security in operation["security"]?.items ?? [] {
            for scheme in members(security) {
                need(document["components"]?["securitySchemes"]?[scheme.key] != nil, "\(place) needs \(scheme.key)")
            }
        }
    }

    private mutating func schema(_ schema: JSONValue, _ place: String) {
        guard case .object = schema else { return need(false, "\(place) has a schema that is no object") }
        let types = schema["type"].map { $0.items ?? [$0] } ?? []
        for type in types {
            need(
                ["null", "boolean", "object", "array", "number", "string", "integer"].contains(type.text ?? ""),
                "\(place) has the type \(type.compact)")
        }
        for name in schema["required"]?.items ?? [] {
            need(schema["properties"]?[name.text ?? ""] != nil, "\(place) requires \(name.compact)")
        }
        for property in members(schema["properties"]) { self.schema(property.value, place) }
        if let items = schema["items"] { self.schema(items, place) }
        need(!types.contains("array") || schema["items"] != nil, "\(place) has a list of nothing")
    }

    private mutating func references(_ value: JSONValue, at place: String) {
        for member in members(value) {
            if member.key == "$ref" {
                var found: JSONValue? = document
                for part in (member.value.text ?? "").dropFirst(2).split(separator: "/") {
                    found = found?[String(part)]
                }
                need(found != nil && member.value.text?.hasPrefix("#/") == true, "\(place) refers to nothing")
            }
            references(member.value, at: "\(place)/\(member.key)")
        }
        for item in value.items ?? [] { references(item, at: place) }
    }

    private func members(_ value: JSONValue?) -> [JSONValue.Member] {
        guard case .object(let members)? = value else { return [] }
        return members
    }

    private mutating func need(_ holds: Bool, _ problem: String) {
        if !holds { problems.append(problem) }
    }
}
