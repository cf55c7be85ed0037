import Faults
import Testing

@testable import Mail

@Suite struct MessageRuleTests {
    @Test(arguments: [
        ("X-Campaign", "spring"), ("List-Unsubscribe", "<https://x.example/u?t=1>, <mailto:u@x.example>"),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"), ("Auto-Submitted", "auto-generated"),
        ("X-Name", "Zoë"),
    ])
    func `headers of one's own are taken`(name: String, value: String) throws {
        try Letter.sample { $0.headers = [.init(name, value)] }.check()
    }

    @Test(arguments: [
        ("From", "x"), ("bcc", "evil@x.example"), ("BCC", "x"), ("Content-Type", "text/html"), ("DKIM-Signature", "x"),
        ("X: y\r\nBcc", "x"), ("X Y", "x"), ("", "x"), ("X-A", "a\r\nBcc: evil@x.example"), ("X-A", "a\nb"),
        ("X-A", "a\0"),
        ("X-A", "a\u{2028}b"), ("List-Unsubscribe", "<https://bücher.example>"), ("Resent-To", "x"),
        ("Idempotency-Key", "x"), ("X-A", String(repeating: "x", count: 2001)), ("X-É", "x"),
    ])
    func `headers that would change the message are refused`(name: String, value: String) {
        #expect(throws: Complaint.self) { try Letter.sample { $0.headers = [.init(name, value)] }.check() }
    }

    @Test(arguments: [
        ("report.pdf", "application/pdf"), ("photo.JPG", "image/jpeg"),
        (
            "résumé.docx",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
        ),
        ("data.parquet", "application/octet-stream"), ("meet.ics", "text/calendar; method=REQUEST; charset=utf-8"),
        ("README", "application/octet-stream"), ("a.b.pdf", "application/pdf"),
    ])
    func `attachments whose name and type agree are taken`(name: String, type: String) throws {
        try Letter.Attachment(filename: name, contentType: type, blob: SampleBlobs.id(1), size: 3).check()
    }

    @Test(arguments: [
        ("report.pdf", "image/png"), ("report.pdf", "application/octet-stream"), ("photo", "image/jpeg"),
        ("run.exe", "application/octet-stream"), ("invoice.pdf.exe", "application/pdf"), ("a.PS1", "text/plain"),
        ("../../etc/passwd", "text/plain"), ("a\\b.txt", "text/plain"), ("a\r\nb.txt", "text/plain"),
        ("a\u{202E}fdp.exe", "application/pdf"), ("", "text/plain"), ("a.txt ", "text/plain"), ("a.exe.", "text/plain"),
        ("a.txt", "text"), ("a.txt", "text/plain\r\nX: y"), ("a.txt", "text/plain; name=b.exe"),
        ("a.txt", "text/plain; boundary=x"), ("a.eml", "message/rfc822"), ("a.x", "multipart/mixed"),
        ("..", "text/plain"),
        (String(repeating: "a", count: 252) + ".txt", "text/plain"),
    ])
    func `attachments that lie, hide or run are refused`(name: String, type: String) {
        #expect(throws: Complaint.self) {
            try Letter.Attachment(filename: name, contentType: type, blob: SampleBlobs.id(1), size: 3).check()
        }
    }

    @Test func `a message is refused for what is missing, doubled or too large`() throws {
        func file(_ size: Int, _ id: String? = nil) -> Letter.Attachment {
            .init(
                filename: "a.bin1", contentType: "application/octet-stream", contentID: id, blob: SampleBlobs.id(1),
                size: size)
        }
        let bad: [(inout Letter) -> Void] = [
            { $0.to = [] }, { $0.subject = " " }, { $0.subject = "a\r\nBcc: x@x.example" }, { $0.text = nil },
            { $0.text = "a\0b" }, { $0.to = Array(repeating: $0.to[0], count: 51) },
            { $0.from.address = "A@X.example" },
            { $0.from.name = "a\nb" }, { $0.to[0].address = "a@b>\r\nRCPT TO:<evil@x.example" },
            { $0.tags = [.init("a b", "c")] }, { $0.tags = [.init("a", "ü")] },
            { $0.headers = [.init("X-A", "1"), .init("x-a", "2")] }, { $0.attachments = [file(1, "x"), file(1, "x")] },
            { $0.attachments = [file(1, "a b")] }, { $0.replyTo = Mailbox(address: "x") },
        ]
        for change in bad { #expect(throws: Complaint.self) { try Letter.sample(change).check() } }
        do {
            try Letter.sample { $0.attachments = [file(29_300_000)] }.check()
            Issue.record("40 MB and more are taken")
        } catch {
            #expect(error.kind == .tooLarge)
        }
        try Letter.sample { $0.attachments = [file(25 << 20)] }.check()
        try Letter.sample {
            $0.cc = [Mailbox(address: "c@x.example")]; $0.to = []
        }.check()
    }
}
