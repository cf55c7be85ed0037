import Postgres
import TestSupport
import Testing

/// Files of a person's own, without a job.
@Suite struct MediaKeepTests {
    private static let sound = "'blob:' || encode(sha256('sound'), 'hex')"

    private static func with(_ body: (Connection) async throws -> Void) async throws {
        try await withConnection { connection in
            try await connection.run(
                "select millrace.link_key_set(sha256('k'), 'https://a.example'), millrace.blob_put(sha256('sound'), 'sound')"
            )
            try await body(connection)
        }
    }

    @Test func `a file is kept as it is, by its person, and goes with it`() async throws {
        try await Self.with { connection in
            let keep =
                "millrace.media_keep(\(Self.sound), 'Audio/MP4', 'birds.m4a', tenant => 'person:ada', id => '00000000-0000-4000-8000-000000000001', actor => 'ada')"
            let id = try await connection.value(keep) ?? ""
            #expect(try await connection.value(keep) == id, "said again")
            #expect(
                try await connection.records(
                    "select what, status, mime_type, files -> 0 ->> 'name', files -> 0 ->> 'size', job is null from millrace.media('\(id)', 'ada')"
                )
                    == ["(file,done,audio/mp4,birds.m4a,5,t)"])
            #expect(
                try await connection.column(
                    "select change || ' ' || (data #>> '{files,0,name}') from millrace.feed_mine(actor => 'ada') where topic = 'media'"
                )
                    == ["done birds.m4a"])
            #expect(
                try await connection.refusal(of: "select millrace.media('\(id)', 'bob')")?.sqlState == "P0002")
            let used = "select used from millrace.quotas where tenant = 'person:ada' and name = 'bytes'"
            #expect(try await connection.value(used) == "5")
            try await connection.run("select millrace.person_erase('ada', 'ada')")
            #expect(try await connection.int("select count(*) from millrace.media_file") == 0)
            #expect(
                try await connection.int("select count(*) from millrace.blob_reference where owner like 'media:%'") == 0
            )
        }
    }

    @Test func `an upload is taken over, a quota holds, and bad input is refused`() async throws {
        try await Self.with { connection in
            try await connection.run(
                "select millrace.quota_set('school', 'bytes', 7), millrace.media_keep(\(Self.sound), 'audio/mp4', tenant => 'school', actor => 'ada')"
            )
            for (arguments, code) in [
                ("\(Self.sound), 'audio/mp4', tenant => 'school'", "53400"),
                ("'file:/etc/passwd', 'audio/mp4'", "22023"),
                ("'blob:' || repeat('0', 64), 'audio/mp4'", "P0002"),
                ("'upload:00000000-0000-4000-8000-000000000001', 'audio/mp4'", "P0002"),
                ("\(Self.sound), 'audio'", "22023"), ("\(Self.sound), null", "22023"),
                ("\(Self.sound), 'audio/mp4', '../birds'", "22023"), ("\(Self.sound), 'audio/mp4', ''", "22023"),
                ("\(Self.sound), 'audio/mp4', tenant => ''", "22023"),
                ("\(Self.sound), 'audio/ogg', tenant => 'school', id => (select id from millrace.media)", "23505"),
            ] {
                #expect(
                    try await connection.refusal(of: "select millrace.media_keep(\(arguments), actor => 'ada')")?
                        .sqlState
                        == code, "\(arguments)")
            }
        }
    }

    @Test func `what a browser would run is saved, whatever its type is said to be`() async throws {
        try await Self.with { connection in
            for (type, shown) in [
                ("text/html", "application/octet-stream"), ("image/svg+xml", "application/octet-stream"),
                ("application/xhtml+xml", "application/octet-stream"), ("video/mp4", "video/mp4"),
                ("image/png", "image/png"),
            ] {
                let found = try await connection.value("millrace.media_shown_as('\(type)')")
                #expect(found == shown, "\(type)")
            }
        }
    }
}
