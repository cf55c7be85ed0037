import Blobs
import Foundation
import TestSupport
import Testing

@testable import Mail

@Suite struct MessageTests {
    @Test func `a plain message is these bytes`() async throws {
        let letter = Letter.sample { $0.cc = [Mailbox(name: "Zoë, the \"Z\"", address: "z@x.example")] }
        let wire = Message.wire(letter)
        let text = """
            Date: Fri, 2 Jan 2026 03:04:05 +0000
            From: Mill Race <mill@sender.example>
            To: ada@reader.example
            Cc: =?utf-8?B?Wm/DqywgdGhlICJaIg==?= <z@x.example>
            Subject: Hello
            Message-ID: <01234567-89ab-4def-8123-456789abcdef@sender.example>
            MIME-Version: 1.0
            Content-Type: text/plain; charset="utf-8"
            Content-Transfer-Encoding: 7bit

            Hello, Ada.

            """.replacingOccurrences(of: "\n", with: "\r\n")
        #expect(wire.whole.map { String(decoding: $0, as: UTF8.self) } == text)
        #expect(wire.length == text.utf8.count)
    }

    @Test func `text, HTML, pictures and attachments are nested as readers expect it`() async throws {
        let letter = Letter.sample {
            $0.html = "<p>Grüße</p><img src=\"cid:logo\">"
            $0.attachments = [
                .init(
                    filename: "logo.png", contentType: "image/png", contentID: "logo", blob: SampleBlobs.id(1), size: 3),
                .init(filename: "Übersicht.pdf", contentType: "application/pdf", blob: SampleBlobs.id(2), size: 60),
            ]
        }
        let blobs = SampleBlobs([SampleBlobs.id(1): [1, 2, 3], SampleBlobs.id(2): [UInt8](repeating: 65, count: 60)])
        let wire = Message.wire(letter)
        let bytes = try await wire.gather(from: blobs.source)
        let id = "01234567-89ab-4def-8123-456789abcdef"
        let text = """
            Date: Fri, 2 Jan 2026 03:04:05 +0000
            From: Mill Race <mill@sender.example>
            To: ada@reader.example
            Subject: Hello
            Message-ID: <\(id)@sender.example>
            MIME-Version: 1.0
            Content-Type: multipart/mixed;
             boundary="=_0_\(id)"

            --=_0_\(id)
            Content-Type: multipart/alternative;
             boundary="=_0.0_\(id)"

            --=_0.0_\(id)
            Content-Type: text/plain; charset="utf-8"
            Content-Transfer-Encoding: 7bit

            Hello, Ada.

            --=_0.0_\(id)
            Content-Type: multipart/related;
             boundary="=_0.0.1_\(id)"; type="text/html"

            --=_0.0.1_\(id)
            Content-Type: text/html; charset="utf-8"
            Content-Transfer-Encoding: quoted-printable

            <p>Gr=C3=BC=C3=9Fe</p><img src=3D"cid:logo">

            --=_0.0.1_\(id)
            Content-Type: image/png
            Content-Disposition: inline; filename="logo.png"
            Content-ID: <logo>
            Content-Transfer-Encoding: base64

            AQID

            --=_0.0.1_\(id)--

            --=_0.0_\(id)--

            --=_0_\(id)
            Content-Type: application/pdf
            Content-Disposition: attachment; filename*=utf-8''%C3%9Cbersicht.pdf
            Content-Transfer-Encoding: base64

            QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB
            QUFB

            --=_0_\(id)--

            """.replacingOccurrences(of: "\n", with: "\r\n")
        #expect(String(decoding: bytes, as: UTF8.self) == text)
        #expect(wire.length == bytes.count)
    }

    @Test func `base64 is the same however it is cut, and as long as foretold`() {
        var random = SeededRandom(3)
        for count in 0..<200 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(Base64.encode(bytes) == Array(Data(bytes).base64EncodedString().utf8))
            for width in [nil, 4, 76] {
                var encoder = Base64(width: width)
                var out: [UInt8] = []
                var at = 0
                while at < count {
                    let next = min(count, at + Int.random(in: 0...20, using: &random))
                    out += encoder.add(bytes[at..<next])
                    at = next
                }
                out += encoder.end()
                #expect(out.count == Base64.length(of: count, width: width))
                #expect(out.filter { $0 > 0x20 } == Base64.encode(bytes))
                if width != nil, count > 0 { #expect(out.suffix(2) == [0x0d, 0x0a]) }
            }
        }
    }

    @Test func `a blob that is shorter than it was said to be is an error`() async throws {
        let letter = Letter.sample {
            $0.attachments = [.init(filename: "a", contentType: "x/y", blob: SampleBlobs.id(1), size: 4)]
        }
        await #expect(throws: BlobError.self) {
            try await Message.wire(letter).gather(from: SampleBlobs([SampleBlobs.id(1): [1, 2, 3]]).source)
        }
        await #expect(throws: BlobError.self) { try await Message.wire(letter).gather(from: SampleBlobs().source) }
    }

    @Test(arguments: [0, 951_782_400, 951_868_799, 1_709_164_800, 4_107_542_399, -1, -86_401])
    func `dates are those of the calendar`(seconds: Int) {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(secondsFromGMT: 0)
        format.dateFormat = "EEE, d MMM yyyy HH:mm:ss '+0000'"
        let date = Date(timeIntervalSince1970: Double(seconds))
        #expect(MessageDate.text(date) == format.string(from: date))
    }

    /// 400 letters of every shape, read by Python's own parser: no defect anywhere, and everything as it was put in.
    @Test func `Python reads what was written, without a defect`() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "millrace-mail-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        var random = SeededRandom(20_260_102)
        for number in 0..<400 {
            let (letter, blobs) = Self.letter(&random)
            try letter.check()
            let bytes = try await Message.wire(letter).gather(from: blobs.source)
            let again = try await Message.wire(letter).gather(from: blobs.source)
            #expect(bytes == again)
            #expect(bytes.count == Message.wire(letter).length)
            for line in bytes.split(separator: 0x0a) {
                #expect(line.count <= 999 && line.last == 0x0d && !line.dropLast().contains(0x0d))
            }
            try Data(bytes).write(to: directory.appending(path: "\(number).eml"))
            try JSONEncoder().encode(Expected(letter, blobs)).write(to: directory.appending(path: "\(number).json"))
        }
        try #"""
        import sys, json, base64, glob, email, email.policy
        bad = 0
        def complain(name, *what):
            global bad
            bad += 1
            if bad < 20: print(name, *what)
        def defects(part):
            found = list(part.defects)
            for name, value in part.items(): found += getattr(value, "defects", ())
            for child in part.iter_parts() if part.is_multipart() else (): found += defects(child)
            return found
        def boxes(header): return [[a.display_name, a.addr_spec] for a in header.addresses] if header else []
        files = glob.glob(sys.argv[1] + "/*.eml")
        for name in files:
            raw = open(name, "rb").read()
            message = email.message_from_bytes(raw, policy=email.policy.default)
            want = json.load(open(name[:-4] + ".json"))
            for defect in defects(message): complain(name, "defect", repr(defect))
            have = {"subject": message["subject"], "from": boxes(message["from"]), "to": boxes(message["to"]),
                    "cc": boxes(message["cc"]), "headers": [[h[0], message[h[0]]] for h in want["headers"]],
                    "bcc": message["bcc"] or ""}
            for part, kind in (("text", "plain"), ("html", "html")):
                body = message.get_body((kind,))
                have[part] = None if body is None else body.get_payload(decode=True).decode("utf-8").replace("\r\n", "\n")
            have["files"] = [[p.get_filename(), p.get_content_type(), p["content-id"] or "",
                              base64.b64encode(p.get_payload(decode=True)).decode()]
                             for p in message.walk() if p.get_filename() is not None]
            for key in have:
                if have[key] != want.get(key): complain(name, key, repr(have[key])[:300], "!=", repr(want.get(key))[:300])
        print(len(files), "read,", bad, "bad")
        """#.write(to: directory.appending(path: "read.py"), atomically: true, encoding: .utf8)
        let said = try await Program.check(
            "/usr/bin/python3", [directory.appending(path: "read.py").path, directory.path])
        #expect(said == "400 read, 0 bad\n")
    }

    private struct Expected: Encodable {
        var subject: String
        var from: [[String]]
        var to: [[String]]
        var cc: [[String]]
        var bcc = ""
        var headers: [[String]]
        var text: String?
        var html: String?
        var files: [[String]]

        init(_ letter: Letter, _ blobs: SampleBlobs) {
            func boxes(_ list: [Mailbox]) -> [[String]] { list.map { [$0.name ?? "", $0.address] } }
            func body(_ text: String?) -> String? {
                text.map { text in
                    let text = text.replacingOccurrences(of: "\r\n", with: "\n").replacingOccurrences(
                        of: "\r", with: "\n")
                    return text.hasSuffix("\n") ? text : text + "\n"
                }
            }
            subject = letter.subject
            from = boxes([letter.from])
            to = boxes(letter.to)
            cc = boxes(letter.cc)
            headers = letter.headers.map { [$0.name, $0.value] }
            text = body(letter.text)
            html = body(letter.html)
            let inline = letter.html == nil ? [] : letter.attachments.filter { $0.contentID != nil }
            let beside = letter.attachments.filter { file in !inline.contains(file) }
            files = (inline + beside).map { file in
                [
                    file.filename, file.contentType, file.contentID.map { "<\($0)>" } ?? "",
                    Data(blobs.contents[file.blob] ?? []).base64EncodedString(),
                ]
            }
        }
    }

    private static func letter(_ random: inout SeededRandom) -> (Letter, SampleBlobs) {
        func text(_ most: Int, line: Bool) -> String {
            let words =
                [
                    "hello", "Grüße", "日本語のテキスト", "مرحبا", "=?utf-8?Q?x?=", "a=b", "\"quoted\"", "back\\slash", "😀👩‍👩‍👧",
                    ".", "From",
                    "--=_0_", "x@y", String(repeating: "long", count: 80), "tab", "(round)", "e\u{301}", "semi;colon",
                    "100%",
                ] + (line ? [] : ["\n", "\r\n", "\n.\n", "\nFrom here\n", "  \n", "\t", "\n--=_0_x\n"])
            var out = ""
            for _ in 0..<Int.random(in: 1...most, using: &random) {
                out += words.randomElement(using: &random) ?? ""
                if Bool.random(using: &random) || line { out += " " }
            }
            return line ? String(out.dropLast()) : out
        }
        func box() -> Mailbox {
            let names = [
                nil, "Ada", "Ada Lovelace", "Lovelace, Ada", "Zoë \"Z\" Ünal", "山田太郎", "O'Neil (CEO)", "a\\b",
                String(repeating: "Very ", count: 30) + "Long", "=?x?=", "Two Words 2", "محمد",
            ]
            let name = names[Int.random(in: 0..<names.count, using: &random)]
            return Mailbox(
                name: name,
                address: "a\(Int.random(in: 0...999, using: &random))@x\(Int.random(in: 0...9, using: &random)).example"
            )
        }
        var letter = Letter.sample()
        letter.from = box()
        letter.to = (0..<Int.random(in: 1...8, using: &random)).map { _ in box() }
        letter.cc = (0..<Int.random(in: 0...3, using: &random)).map { _ in box() }
        letter.bcc = [Mailbox(address: "hidden@x.example")]
        repeat { letter.subject = text(12, line: true) } while letter.subject.utf8.count > 998
        letter.text = Int.random(in: 0...3, using: &random) > 0 ? text(60, line: false) : nil
        letter.html = letter.text == nil || Bool.random(using: &random) ? "<p>\(text(60, line: false))</p>" : nil
        if Bool.random(using: &random) {
            letter.headers = [.init("X-One", text(4, line: true)), .init("X-Two", "plain words")]
        }
        var contents: [BlobID: [UInt8]] = [:]
        let files = [
            ("a.txt", "text/plain"), ("Übersicht für Zoë.pdf", "application/pdf"), ("quote's.png", "image/png"),
            (String(repeating: "長い名前", count: 18) + ".pdf", "application/pdf"), ("no-ending", "application/x-own"),
            (String(repeating: "long", count: 30) + ".csv", "text/csv"), ("percent%20 =?.json", "application/json"),
        ].filter { !$0.0.contains("?") }
        for number in 0..<Int.random(in: 0...4, using: &random) {
            let (name, type) = files[Int.random(in: 0..<files.count, using: &random)]
            let bytes = (0..<Int.random(in: 0...5000, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            let id = SampleBlobs.id(number)
            contents[id] = bytes
            letter.attachments.append(
                .init(
                    filename: name, contentType: type, contentID: Bool.random(using: &random) ? "part\(number)" : nil,
                    blob: id, size: bytes.count))
        }
        return (letter, SampleBlobs(contents))
    }
}
