import Foundation
import JSON
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
            if let place = ProcessInfo.processInfo.environment["OPENAPI_OUT"] {  // for deploy/check-openapi
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

    @Test func `the document follows the schema`() async throws {
        try await GatewayWorld.with { world in
            func has(_ name: String) async throws -> Bool {
                try await world.service.catalogue.refresh()
                return try await world.ask("GET", "/v1/openapi.json", as: nil).json["paths"]?["/v1/rpc/\(name)"] != nil
            }
            #expect(try await !has("added_later"))
            try await world.owner.run(
                "create function millrace.added_later() returns int language sql as 'select 1'")
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
