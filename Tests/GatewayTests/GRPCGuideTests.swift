import Faults
import Foundation
import JSON
import Postgres
import Telemetry
import TestSupport
import Testing

@testable import Gateway

/// The guide for who expected gRPC names routes, arguments and codes that are there.
@Suite(.timeLimit(.minutes(10))) struct GRPCGuideTests {
    private static func guide() throws -> String {
        try String(
            contentsOf: URL(filePath: #filePath).appending(path: "../../../deploy/guides/grpc.md").standardizedFileURL,
            encoding: .utf8)
    }

    /// The rows of a section's table, without its head.
    private static func rows(_ heading: String) throws -> [[String]] {
        let section = try #require(try guide().split(separator: "## \(heading)\n").dropFirst().first)
        let lines = section.split(separator: "\n## ")[0].split(separator: "\n").filter { $0.hasPrefix("|") }
        return lines.dropFirst(2).map { line in
            line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    /// The routes of streams stand beside those of calls.
    private static let streams: Set<String> = {
        let place = ConnectionOptions(location: "postgres:///nothing-is-read-from-it")
        let pool = Pool(place, size: 1)
        let database = GatewayDatabase(pool: pool, role: "nobody")
        let hub = FeedHub(
            database, connecting: place, hearing: NotificationHub(place), options: FeedHub.Options(), log: .silent)
        let routes = StreamRoutes(
            feed: FeedStreams(hub: hub), jobs: JobStreams(hub: JobHub(pool: pool, log: .silent), database: database))
        return Set(routes.table.map(\.path))
    }()

    @Test func `each planned method has a route that is there`() async throws {
        let rows = try Self.rows("The service, call by call")
        #expect(rows.count >= 15)
        try await GatewayWorld.with { world in
            let paths = try #require(try await world.ask("GET", "/v1/openapi.json", as: nil).json["paths"])
            var named = 0
            for row in rows {
                let routes = row[1].matches(of: /`(GET|POST) (\/v1\/[^`]+)`/)
                #expect(!routes.isEmpty, "\(row[0])")
                for route in routes {
                    let (method, path) = (String(route.output.1), String(route.output.2))
                    named += 1
                    if path.hasSuffix("/events") {
                        #expect(Self.streams.contains(path), "\(path)")
                    } else {
                        #expect(paths[path]?[method.lowercased()] != nil, "\(method) \(path)")
                    }
                }
            }
            #expect(named >= 18)
            // What the table of fields gives to functions, they take and give.
            for (door, arguments, columns) in [
                ("document_upload", ["name", "mime_type", "size"], ["url", "storage_url", "expires_at"]),
                ("document_register", ["title", "mime_type", "size", "storage_url", "lesson_id", "options", "id"], []),
                (
                    "document", ["id"],
                    ["id", "title", "mime_type", "size", "lesson_id", "status", "pages", "created_at", "reason"]
                ),
                ("document_list", ["page", "after"], []), ("lesson_list", ["page", "after"], ["next"]),
                ("lesson", ["id"], ["id", "title", "data", "documents", "changed_at"]),
                ("lesson_delete", ["ids"], ["id", "deleted", "documents"]),
                ("document_analysis", ["id"], ["summary", "key_points", "questions"]),
            ] {
                let route = paths["/v1/rpc/\(door)"]?["post"]
                let taken = route?["requestBody"]?["content"]?["application/json"]?["schema"]?["properties"]
                for argument in arguments { #expect(taken?[argument] != nil, "\(door) takes no \(argument)") }
                let schema = route?["responses"]?["200"]?["content"]?["application/json"]?["schema"]
                let given = schema?["properties"] ?? schema?["items"]?["properties"]
                for column in columns { #expect(given?[column] != nil, "\(door) gives no \(column)") }
            }
        }
    }

    @Test func `the table of codes is that of the program, both ways`() throws {
        let rows = try Self.rows("Codes, both ways")
        #expect(Set(rows.map { $0[0] }) == Set(ErrorClass.allCases.map(\.rawValue)))
        var back: [Int: ErrorClass] = [:]
        for row in rows {
            let known = try #require(ErrorClass(rawValue: row[0]))
            #expect(row[1] == "\(known.httpStatus)", "\(row[0])")
            #expect(row[2].firstMatch(of: /^(\d+) [A-Z_]+$/) != nil, "\(row[0])")
            for code in row[3].matches(of: /\d+/) { back[Int(code.output) ?? 0] = known }
        }
        for code in 1...16 { #expect(ErrorClass(grpc: code) == back[code], "\(code)") }
        #expect(ErrorClass(grpc: 99) == .unknown && ErrorClass(grpc: 0) == nil)
    }
}
