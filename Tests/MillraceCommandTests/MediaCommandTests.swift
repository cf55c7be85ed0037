import Foundation
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// Thumbnails and pictures without metadata by the command line. No worker runs: the test says what became of them.
@Suite struct MediaCommandTests {
    private static let id = "0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e"
    private static let other = "0198c1f2-7a3e-7000-8000-5a1f2b3c4d5f"

    private func media(_ arguments: String..., on database: TestDatabase) async -> Outcome {
        await media(arguments, on: database)
    }

    private func media(_ arguments: [String], on database: TestDatabase) async -> Outcome {
        let capture = Capture()
        let code = await Application.run(
            arguments: ["media"] + arguments + ["--database-url", database.url],
            surroundings: .fake(files: ["heron.png": "a heron"]), console: capture.console)
        return Outcome(code: code, output: capture.output, errors: capture.errors)
    }

    /// A worker's answer: its thumbnail has the same bytes as the original.
    private static func make(on database: TestDatabase) async throws {
        try await database.change(
            """
            insert into millrace.media_file (media, kind, blob, size, mime_type, width, height)
            select id, 'thumbnail', blob, 7, 'image/jpeg', 32, 24 from millrace.media where id = '\(id)';
            update millrace.media set status = 'done', ended_at = now() where id = '\(id)';
            select millrace.link_key_set(sha256('k'), 'https://a.example')
            """)
    }

    @Test func `a file is stored and handed in once, and listed and shown to whom it belongs`() async throws {
        try await withDatabase { database in
            let first = await media(
                "process", "heron.png", "--thumbnail", "320x", "--strip", "--format", "png", "--as", "anna",
                "--tenant", "zoo", "--id", Self.id, on: database)
            #expect(first.code == .done && first.output == "\(Self.id)\n", "\(first.errors)")
            let connection = try await database.connect()
            #expect(
                try await connection.value("select wish from millrace.media")
                    == #"{"strip": true, "format": "png", "thumbnail": {"width": 320}}"#)
            #expect(
                try await connection.bool(
                    "select b.size = 7 and m.owner = 'anna' and m.tenant = 'zoo' from millrace.media m join millrace.blob b on b.id = m.blob"
                ))
            let again = await media(
                "process", "heron.png", "--thumbnail", "320x", "--strip", "--format", "png", "--as", "anna",
                "--tenant", "zoo", "--id", Self.id, on: database)
            #expect(again.code == .done && again.output == first.output, "\(again.errors)")
            #expect(await media("process", "heron.png", "--strip", "--id", Self.id, on: database).code == .conflict)

            let blob = try await connection.value("select encode(blob, 'hex') from millrace.media") ?? ""
            #expect(await media("process", "blob:\(blob)", "--strip", "--id", Self.other, on: database).code == .done)
            func listed(_ flags: String...) async throws -> [String?] {
                let outcome = await media(["list", "--json"] + flags, on: database)
                return try JSONValue.read(outcome.output)["media"]?.items?.map { $0["id"]?.text } ?? []
            }
            #expect(try await listed("--limit", "1") == [Self.other])
            #expect(try await listed("--after", Self.other) == [Self.id])
            #expect(
                await media("list", "--person", "anna", "--status", "waiting", on: database).output.contains(Self.id))
            #expect(
                await media("list", "--tenant", "zoo", "--status", "done", on: database).output
                    == "there are no media\n")
            let shown = try JSONValue.read(await media("show", Self.id, "--as", "anna", "--json", on: database).output)
            #expect(shown["owner"]?.text == "anna" && shown["status"]?.text == "waiting" && shown["job"] != .null)
            #expect(await media("show", Self.id, "--as", "ben", on: database).code == .notFound)
            await connection.close()
        }
    }

    @Test func `what cannot be handed in is said before anything is stored`() async throws {
        try await withDatabase { database in
            for (arguments, words) in [
                (["heron.png"], "nothing is to be made"), (["heron.png", "--format", "png"], "nothing is to be made"),
                (["heron.png", "--thumbnail", "x"], "takes a size such as 320x240"),
                (["heron.png", "--thumbnail", "0x5"], "takes a size"),
                (["heron.png", "--thumbnail", "5000x5"], "takes a size"),
                (["swan.png", "--strip"], "no such file"), (["blob:12", "--strip"], "storage_url has an unknown form"),
            ] {
                let outcome = await media(["process"] + arguments, on: database)
                #expect(
                    outcome.code == .misused && outcome.errors.contains(words), "\(arguments): \(outcome.errors)")
            }
            let none = String(repeating: "0", count: 64)
            let missing = await media("process", "blob:\(none)", "--strip", on: database)
            #expect(missing.code == .notFound, "\(missing.errors)")
            let connection = try await database.connect()
            #expect(try await connection.int("select count(*) from millrace.blob") == 0)
            await connection.close()
        }
    }

    @Test func `who waits is told the end by the exit code, and gets the files`() async throws {
        try await withDatabase { database in
            let folder = FileManager.default.temporaryDirectory.appending(path: "media-\(UUID().uuidString)").path
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let wish = ["process", "heron.png", "--thumbnail", "32x24", "--id", Self.id]
            let early = await media(wish + ["--wait", "--timeout", "1ms"], on: database)
            #expect(early.code == .timedOut && early.errors.contains("not made yet"), "\(early.errors)")
            #expect(await media("link", Self.id, "thumbnail", on: database).code == .conflict)
            try await Self.make(on: database)
            let done = await media(wish + ["--out", folder, "--json"], on: database)
            #expect(done.code == .done && done.errors.contains("thumbnail.jpg is written"), "\(done.errors)")
            #expect(try String(contentsOfFile: "\(folder)/thumbnail.jpg", encoding: .utf8) == "a heron")
            let files = try JSONValue.read(done.output)["files"]?.items
            #expect(files?.map { $0["kind"]?.text } == ["thumbnail"] && files?[0]["width"]?.integer == 32)
            let again = await media(wish + ["--out", folder], on: database)
            #expect(again.code == .failed && again.errors.contains("cannot be made"), "\(again.errors)")
            #expect(again.output.contains(Self.id), "what was made is told all the same")

            let failed = ["process", "heron.png", "--strip", "--id", Self.other, "--wait"]
            _ = await media(failed + ["--timeout", "1ms"], on: database)
            try await database.change(
                "update millrace.media set status = 'failed', reason = 'malformed', ended_at = now() where id = '\(Self.other)'"
            )
            let refused = await media(failed, on: database)
            #expect(refused.code == .jobDied && refused.output.contains("reason  malformed"), "\(refused.errors)")
        }
    }

    @Test func `a link is made for a while, and what is deleted is gone`() async throws {
        try await withDatabase { database in
            for id in [Self.id, Self.other] {
                let made = await media("process", "heron.png", "--strip", "--as", "anna", "--id", id, on: database)
                #expect(made.code == .done, "\(made.errors)")
            }
            try await Self.make(on: database)
            let link = await media("link", Self.id, "thumbnail", "--valid", "5m", "--as", "anna", on: database)
            #expect(link.code == .done && link.output.hasPrefix("https://a.example/v1/blobs/g."), "\(link.errors)")
            #expect(await media("link", Self.id, "picture", on: database).code == .conflict)
            #expect(await media("link", Self.id, "thumbnail", "--as", "ben", on: database).code == .notFound)
            #expect(await media("link", Self.id, "thumbnail", "--valid", "2d", on: database).code == .misused)

            #expect(await media("delete", Self.id, "--as", "ben", on: database).code == .notFound)
            #expect(await media("delete", Self.id, Self.other, on: database).code == .misused, "nobody can be asked")
            let all = await media("delete", Self.id, Self.other, "--yes", on: database)
            #expect(all.code == .done && all.output == "2 media deleted\n", "\(all.errors)")
            let gone = await media("delete", Self.id, "--json", on: database)
            #expect(gone.code == .notFound)
            #expect(try JSONValue.read(gone.output)["changed"]?.integer == 0)
            let connection = try await database.connect()
            #expect(try await connection.int("select count(*) from millrace.blob_reference") == 0)
            #expect(try await connection.int("select count(*) from millrace.jobs where state = 'cancelled'") == 1)
            await connection.close()
        }
    }
}
