import Blobs
import CZlib
import Documents
import Foundation
import Pages
import Postgres
import TestSupport
import Testing

/// Thumbnails and pictures without metadata, on the queue, made by the real programs.
@Suite(.serialized) struct MediaTests {
    /// What a camera writes into a file: its own name, a place, and more that only the owner should know.
    private static let marks = ["SecretCam", "SecretPlace", "SecretXMP", "SecretProfile", "SecretNote"]

    private static func photo(_ picture: Grid, orientation: Int) -> [UInt8] {
        func segment(_ marker: UInt8, _ text: String) -> [UInt8] {
            let data = Array(text.utf8)
            return [0xff, marker, UInt8((data.count + 2) >> 8), UInt8((data.count + 2) & 255)] + data
        }
        let more =
            segment(0xe1, "http://ns.adobe.com/xap/1.0/\0<x:xmpmeta>SecretXMP</x:xmpmeta>")
            + segment(0xe2, "ICC_PROFILE\0\u{1}\u{1}SecretProfile") + segment(0xfe, "SecretNote")
        return jpeg(
            of: picture.stored(orientation),
            exif: exif(orientation: orientation) + Array("Make SecretCam GPS SecretPlace".utf8), junk: more)
    }

    private static func marked(png file: [UInt8]) -> [UInt8] {
        func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
            let body = Array(name.utf8) + data
            let sum = UInt32(truncatingIfNeeded: crc32(0, body, uInt(body.count)))
            func big(_ value: UInt32) -> [UInt8] {
                (0..<4).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
            }
            return big(UInt32(data.count)) + body + big(sum)
        }
        let more =
            chunk("eXIf", exif(orientation: 1) + Array("Make SecretCam GPS SecretPlace".utf8))
            + chunk("iTXt", Array("XML:com.adobe.xmp\0\0\0\0\0SecretXMP".utf8))
            + chunk("tEXt", Array("Comment\0SecretNote".utf8)) + chunk("zzPr", Array("SecretProfile".utf8))
        return Array(file.prefix(33)) + more + Array(file.dropFirst(33))
    }

    private static let plain = png(
        width: bar.width, height: bar.height, rows: (0..<bar.height).map { y in (0..<bar.width).map { bar[$0, y] } })

    private static func grid(_ file: [UInt8]) async throws -> Grid {
        try await withFile(file) { file in
            let inspection = try await workshop.probe(file).value
            return Grid(try await workshop.raster(file, inspection, page: 1).value)
        }
    }

    /// A quarter of its pixels.
    private static let half = Grid(width: 48, height: 32) { x, y in bar[x * 2, y * 2] }

    @Test func `a picture of each format becomes a thumbnail that is the right way up`() async throws {
        let files: [(String, [UInt8], Grid, Double)] = [
            ("JPEG", Self.photo(bar, orientation: 6), bar, 8), ("JPEG as stored", jpeg(of: bar), bar, 8),
            ("PNG", Self.plain, bar, 1), ("TIFF", TIFFForm(orientation: 6).made(of: bar), bar, 1),
            ("GIF", GIFForm().made(of: bar), bar, 3), ("BMP", BMPForm().made(of: bar), bar, 1),
            ("WebP", WebPForm(orientation: 6).made(of: bar.stored(6)), bar, 1), ("JP2", jp2Sample, bar, 2),
            ("AVIF", avifSample, bar, 3), ("turned AVIF", turned(avifSample, quarters: 1), bar.stored(6), 3),
        ]
        try await withDocuments { bench in
            var asked: [String] = []
            for (_, file, _, _) in files {
                asked.append(
                    try await bench.media(
                        file, #"{"thumbnail": {"width": 48, "height": 48}, "strip": true, "format": "png"}"#))
            }
            for ((name, _, shown, most), id) in zip(files, asked) {
                #expect(try await bench.mediaEnded(id) == "done", "\(name)")
                let whole = try await Self.grid(try await bench.mediaFile(id, "picture"))
                #expect(whole.distance(to: shown) <= most, "\(name): \(whole.distance(to: shown))")
                let small = try await Self.grid(try await bench.mediaFile(id, "thumbnail"))
                let expected = shown.width > shown.height ? Self.half : Self.half.stored(6)
                #expect(small.width == expected.width && small.height == expected.height, "\(name)")
                // Pixels at edges are means of both sides.
                #expect(small.distance(to: expected) <= most + 4, "\(name): \(small.distance(to: expected))")
                #expect(
                    try await bench.connection.value(
                        "select string_agg(f ->> 'width' || '×' || (f ->> 'height') || ' ' || (f ->> 'mime_type'), ', ') from millrace.media('\(id)') m, jsonb_array_elements(m.files) f"
                    ) == "\(shown.width)×\(shown.height) image/png, \(expected.width)×\(expected.height) image/png",
                    "\(name)")
            }
        }
    }

    @Test func `a thumbnail keeps within its bounds and grows nothing`() async throws {
        try await withDocuments { bench in
            let line = png(
                width: 300, height: 2, rows: [[UInt8](repeating: 9, count: 300), [UInt8](repeating: 200, count: 300)])
            for (file, thumbnail, sides) in [
                (Self.plain, #"{"width": 33}"#, "33×22"), (Self.plain, #"{"height": 7}"#, "11×7"),
                (Self.plain, #"{"width": 4096, "height": 4096}"#, "96×64"),
                (line, #"{"width": 10, "height": 10}"#, "10×1"),
            ] {
                let id = try await bench.media(file, #"{"thumbnail": \#(thumbnail), "format": "png"}"#)
                #expect(try await bench.mediaEnded(id) == "done")
                #expect(
                    try await bench.connection.value(
                        "select f ->> 'width' || '×' || (f ->> 'height') from millrace.media('\(id)') m, jsonb_array_elements(m.files) f"
                    ) == sides, "\(thumbnail)")
            }
        }
    }

    @Test func `nothing of what a camera wrote is in what comes of it`() async throws {
        let files = [Self.photo(bar, orientation: 6), Self.marked(png: Self.plain)]
        try await withDocuments { bench in
            for file in files {
                for mark in Self.marks { #expect(file.holds(mark), "\(mark): the search would find nothing anyway") }
                for format in ["jpeg", "png"] {
                    let id = try await bench.media(
                        file, #"{"thumbnail": {"width": 50}, "strip": true, "format": "\#(format)"}"#)
                    #expect(try await bench.mediaEnded(id) == "done")
                    for kind in ["picture", "thumbnail"] {
                        let made = try await bench.mediaFile(id, kind)
                        #expect(made.starts(with: format == "png" ? [0x89, 0x50, 0x4e, 0x47] : [0xff, 0xd8, 0xff]))
                        for mark in Self.marks + ["Secret", "Exif", "http:", "ICC_PROFILE", "eXIf", "tEXt"] {
                            #expect(!made.holds(mark), "\(mark) is in the \(kind) as \(format)")
                        }
                    }
                    // Who opens it without looking at an orientation sees it upright, too.
                    let seen = try await Self.grid(try await bench.mediaFile(id, "picture"))
                    #expect(seen.distance(to: bar) < 8)
                }
            }
        }
    }

    @Test func `a bomb, a cut file and what is no picture end with a reason, and the worker goes on`() async throws {
        func with(_ file: [UInt8], at place: Int, _ bytes: [UInt8]) -> [UInt8] {
            var file = file
            file.replaceSubrange(place..<place + bytes.count, with: bytes)
            return file
        }
        let bad: [(String, [UInt8], String)] = [
            (
                "a GIF of four gigapixels", with(GIFForm().made(of: bar), at: 6, [255, 255, 255, 255]),
                "too_many_pixels"
            ),
            ("a PNG of gigapixels", png(width: 60_000, height: 60_000, rows: [[0]]), "too_many_pixels"),
            ("half a PNG", Array(Self.plain.prefix(Self.plain.count / 2)), "malformed"),
            ("a JPEG's first bytes", Array(jpeg(of: bar).prefix(60)), "malformed"),
            ("a PDF", hello(), "unsupported"), ("a text", Array("Hello out there".utf8), "unsupported"),
        ]
        try await withDocuments { bench in
            var asked: [String] = []
            for (_, file, _) in bad { asked.append(try await bench.media(file, #"{"strip": true}"#)) }
            for ((name, _, reason), id) in zip(bad, asked) {
                #expect(try await bench.mediaEnded(id) == "failed \(reason)", "\(name)")
                let job = "select job from millrace.media('\(id)')"
                try await eventually("its job is dead") {
                    try await bench.connection.value("select state from millrace.jobs where id = (\(job))") == "dead"
                }
                #expect(
                    try await bench.connection.bool(
                        "select errors -> -1 ->> 'error' like '\(reason): %' and attempt = 1 from millrace.job((\(job)))"
                    ),
                    "\(name)")
                #expect(
                    try await bench.connection.value(
                        "select data ->> 'reason' from millrace.feed_mine(topics => '{media}', actor => 'ann') where ref = '\(id)'"
                    ) == reason)
            }
            // Nothing of these files is kept for them.
            #expect(try await bench.connection.int("select count(*) from millrace.blob_reference") == 0)
            let good = try await bench.media(Self.plain, #"{"strip": true}"#)
            #expect(try await bench.mediaEnded(good) == "done")
        }
    }

    @Test func `files stay while their media do, and the person hears of both`() async throws {
        try await withDocuments { bench in
            let id = try await bench.media(Self.plain, #"{"thumbnail": {"width": 9}, "strip": true}"#)
            #expect(try await bench.mediaEnded(id) == "done")
            let connection = bench.connection
            #expect(
                try await connection.column("select owner from millrace.blob_reference order by owner")
                    == ["media:\(id):picture", "media:\(id):thumbnail"])
            #expect(
                try await connection.bool(
                    "select result -> 'files' = (select files from millrace.media('\(id)')) and result ->> 'media' = '\(id)' from millrace.jobs where kind = 'media.process'"
                ))
            #expect(
                try await connection.column(
                    "select change || ' ' || jsonb_array_length(data -> 'files') from millrace.feed_mine(actor => 'ann')"
                )
                    == ["done 2"])
            #expect(try await connection.int("select count(*) from millrace.feed_mine(actor => 'ben')") == 0)
            for call in [
                "media('\(id)', 'ben')", "media_link('\(id)', 'picture', actor => 'ben')",
                "media_delete('\(id)', 'ben')",
            ] {
                #expect(
                    try await connection.refusal(of: "select millrace.\(call)")?.sqlState == "P0002", "\(call)")
            }
            try await connection.run("select millrace.link_key_set(sha256('k'), 'https://a.example')")
            #expect(
                try await connection.value("select millrace.media_link('\(id)', 'picture', actor => 'ann')")?.hasPrefix(
                    "https://a.example/v1/blobs/g.") == true)
            #expect(
                try await connection.refusal(of: "select millrace.media_link('\(id)', 'pdf', actor => 'ann')")?.sqlState
                    == "55000")
            #expect(try await connection.bool("select millrace.media_delete('\(id)', 'ann')"))
            #expect(try await connection.int("select count(*) from millrace.blob_reference") == 0)
            #expect(
                try await connection.column("select change from millrace.feed_mine(actor => 'ann')")
                    == ["done", "deleted"])
        }
    }

    @Test func `what is made counts as bytes of the tenant, and over its quota nothing is kept`() async throws {
        try await withDocuments { bench in
            try await bench.connection.run("select millrace.quota_set('acme', 'bytes', 5)")
            let id = try await bench.media(Self.plain, #"{"strip": true}"#, "tenant => 'acme'")
            #expect(try await bench.mediaEnded(id) == "failed quota")
            #expect(try await bench.connection.int("select count(*) from millrace.blob_reference") == 0)
            try await bench.connection.run("select millrace.quota_set('acme', 'bytes', 100000)")
            let other = try await bench.media(Self.plain, #"{"strip": true}"#, "tenant => 'acme'")
            #expect(try await bench.mediaEnded(other) == "done")
            #expect(
                try await bench.connection.bool(
                    "select used = (select (files -> 0 ->> 'size')::int from millrace.media('\(other)')) from millrace.quotas where name = 'bytes'"
                ))
        }
    }

    @Test func `what is called off, erased or given up leaves nothing behind`() async throws {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            let id = "00000000-0000-4000-8000-000000000001"
            #expect(try await bench.media(Self.plain, #"{"strip": true}"#, "id => '\(id)'") == id)
            #expect(try await bench.media(Self.plain, #"{"strip": true}"#, "id => '\(id)'") == id)
            #expect(try await connection.int("select count(*) from millrace.job") == 1)
            let blob = try await bench.store.put(Self.plain)
            #expect(
                try await connection.refusal(
                    of:
                        "select millrace.media_process('blob:\(blob)', '{\"thumbnail\": {\"width\": 5}}', id => '\(id)', actor => 'ann')"
                )?.sqlState == "23505")
            #expect(try await connection.value("select owner from millrace.blob_reference") == "media:\(id)")
            #expect(try await connection.bool("select (millrace.person_erase('ann') -> 'media')::int = 1"))
            for table in ["media", "media_file", "blob_reference"] {
                #expect(try await connection.int("select count(*) from millrace.\(table)") == 0, "\(table)")
            }
            #expect(try await connection.column("select state from millrace.jobs") == ["cancelled"])
            // A job that an operator cancels: who looks at documents notices.
            let lost = try await bench.media(Self.plain, #"{"strip": true}"#)
            try await connection.run(
                "select millrace.cancel(job) from millrace.media; update millrace.media set created_at = created_at - interval '1 minute'"
            )
            #expect(try await connection.int("select millrace.documents_check()") == 1)
            #expect(try await bench.mediaEnded(lost) == "failed internal")
            #expect(try await connection.int("select count(*) from millrace.blob_reference") == 0)
        }
    }

    @Test func `what cannot be made is refused when it is asked for`() async throws {
        try await withDocuments(works: false) { bench in
            let blob = "blob:\(try await bench.store.put(Self.plain))"
            for (url, options, state, sentence) in [
                ("blob:\(String(repeating: "0", count: 64))", #"{"strip": true}"#, "P0002", "there is nothing under"),
                ("upload:00000000-0000-4000-8000-000000000001", #"{"strip": true}"#, "P0002", "there is nothing under"),
                ("https://a.example/x.png", #"{"strip": true}"#, "22023", "the storage_url has an unknown form"),
                (blob, "[]", "22023", "options is not a JSON object"),
                (blob, "{}", "22023", "options do not ask for anything"),
                (blob, #"{"strip": false}"#, "22023", "options do not ask for anything"),
                (blob, #"{"strip": "yes"}"#, "22023", "options.strip is neither true nor false"),
                (blob, #"{"strip": true, "format": "gif"}"#, "22023", "options.format is unknown"),
                (blob, #"{"strip": true, "size": 5}"#, "22023", "options.size is unknown"),
                (blob, #"{"thumbnail": 5}"#, "22023", "options.thumbnail has neither a width"),
                (blob, #"{"thumbnail": {}}"#, "22023", "options.thumbnail has neither a width"),
                (blob, #"{"thumbnail": {"width": 5, "depth": 5}}"#, "22023", "options.thumbnail has neither a width"),
                (blob, #"{"thumbnail": {"width": "5"}}"#, "22023", "a side of options.thumbnail"),
                (blob, #"{"thumbnail": {"width": 0}}"#, "22023", "a side of options.thumbnail"),
                (blob, #"{"thumbnail": {"width": 5.5}}"#, "22023", "a side of options.thumbnail"),
                (blob, #"{"thumbnail": {"width": 4097}}"#, "22023", "a side of options.thumbnail"),
            ] {
                let refusal = try await bench.connection.refusal(
                    of: "select millrace.media_process('\(url)', '\(options)', actor => 'ann')")
                #expect(refusal?.sqlState == state, "\(options)")
                #expect(refusal?.message.hasPrefix(sentence) == true, "\(options): \(refusal?.message ?? "-")")
            }
            #expect(try await bench.connection.int("select count(*) from millrace.job") == 0)
        }
    }
}

extension DocumentBench {
    fileprivate func media(_ bytes: [UInt8], _ options: String, _ more: String = "") async throws -> String {
        let blob = try await store.put(bytes)
        return try #require(
            try await connection.value(
                "millrace.media_process('blob:\(blob)', '\(options)', actor => 'ann'\(more.isEmpty ? "" : ", \(more)"))"
            ))
    }

    /// Its status and reason, once it has ended.
    fileprivate func mediaEnded(_ id: String) async throws -> String {
        let line = "select concat_ws(' ', status, reason) from millrace.media('\(id)')"
        try await eventually("media \(id) have ended") { try await connection.value(line) != "waiting" }
        return try await connection.value(line) ?? "gone"
    }

    fileprivate func mediaFile(_ id: String, _ kind: String) async throws -> [UInt8] {
        let url = try await connection.value(
            "select f ->> 'storage_url' from millrace.media('\(id)') m, jsonb_array_elements(m.files) f where f ->> 'kind' = '\(kind)'"
        )
        return try await store.get(try #require(url.flatMap { BlobID(String($0.dropFirst(5))) }))
    }
}

extension [UInt8] {
    fileprivate func holds(_ text: String) -> Bool { Data(self).range(of: Data(text.utf8)) != nil }
}
