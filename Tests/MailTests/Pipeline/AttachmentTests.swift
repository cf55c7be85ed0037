import Blobs
import Postgres
import TestSupport
import Testing

@testable import Mail

/// A file that runs when it is opened is refused under every name, both when it is enqueued and when it is sent.
@Suite struct AttachmentTests {
    static let refused: [(name: String, type: String)] = [
        ("x.exe\u{A0}", "application/octet-stream"), ("x.ex\u{FF45}", "application/octet-stream"),
        ("x\u{FF0E}exe", "application/octet-stream"), ("x\u{2024}exe", "application/octet-stream"),
        ("x\u{2026}exe", "application/octet-stream"), ("x\u{3002}exe", "application/octet-stream"),
        ("x.\u{1D41E}\u{1D431}\u{1D41E}", "application/octet-stream"), ("x.e\u{301}xe", "application/octet-stream"),
        ("x.exe\u{200B}", "application/octet-stream"), ("x.e\u{AD}xe", "application/octet-stream"),
        ("x.exe\u{2003}", "application/octet-stream"), ("x.exe\u{3000}", "application/octet-stream"),
        ("x.exe ", "application/octet-stream"), ("x.exe.", "application/octet-stream"),
        ("x.exe. .", "application/octet-stream"),
        ("x. exe", "application/octet-stream"), ("x.EXE", "application/octet-stream"), ("x.pdf.exe", "application/pdf"),
        ("x.html", "text/html"), ("x.htm", "text/html"), ("x.HTML", "text/plain"), ("x.svg", "image/svg+xml"),
        ("x.svgz", "application/octet-stream"), ("x.xhtml", "application/xhtml+xml"), ("x.shtml", "text/plain"),
        ("x.hta", "application/octet-stream"), ("x.mht", "application/octet-stream"),
        ("x.js", "application/octet-stream"),
        ("x.docm", "application/octet-stream"),
        ("x.foo", "text/html"), ("x", "text/html"), ("x.foo", "image/svg+xml"), ("x.foo", "application/x-msdownload"),
        ("x.foo", "Application/X-MSDownload"), ("x.foo", "application/xhtml+xml"), ("x.foo", "text/javascript"),
        ("x.foo", "application/hta"), ("x.foo", "application/java-archive"), ("x.foo", "application/x-sh"),
    ]
    static let taken: [(name: String, type: String)] = [
        ("bill.pdf", "application/pdf"),
        ("r\u{E9}sum\u{E9}.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("Offer No. 5", "application/octet-stream"), ("exe", "application/octet-stream"),
        ("data.parquet", "application/octet-stream"),
        ("x.exe.pdf", "application/pdf"), ("photo.JPG", "image/jpeg"), ("\u{8BF7}\u{6C42}.pdf", "application/pdf"),
    ]

    @Test(arguments: refused) func `what runs when it is opened is not sent`(_ name: String, _ type: String) {
        #expect(throws: Complaint.self) {
            try Letter.Attachment(filename: name, contentType: type, blob: SampleBlobs.id(1), size: 3).check()
        }
    }

    @Test(arguments: taken) func `what does not is sent`(_ name: String, _ type: String) throws {
        try Letter.Attachment(filename: name, contentType: type, blob: SampleBlobs.id(1), size: 3).check()
    }

    @Test func `mail_send refuses the same where it is handed in, and says why`() async throws {
        try await withMail { bench in
            func hand(_ name: String, _ type: String) -> String {
                """
                select millrace.mail_send(array['a@b.example'], 's', 't', attachments =>
                    jsonb_build_array(jsonb_build_object('filename', $n$\(name)$n$, 'content_type', '\(type)', 'data', '')))::text
                """
            }
            for (name, type) in Self.refused {
                let refusal = try await bench.connection.refusal(of: hand(name, type))
                #expect(refusal?.sqlState == "22023", "\(name.debugDescription) \(type)")
                #expect(refusal?.detail?.contains("\"field\" : \"attachments\"") == true)
                #expect(refusal?.hint?.isEmpty == false)
            }
            for (name, type) in Self.taken {
                #expect(try await bench.connection.value(hand(name, type)) != nil, "\(name)")
            }
        }
    }

    @Test func `both sides have the same lists`() async throws {
        try await withMail { bench in
            let endings = try await bench.connection.column("select unnest(millrace.mail_attachment_endings())")
            let types = try await bench.connection.column("select unnest(millrace.mail_attachment_types())")
            #expect(Set(endings) == AttachmentKind.dangerous && endings.count == AttachmentKind.dangerous.count)
            #expect(Set(types) == AttachmentKind.dangerousTypes && types.count == AttachmentKind.dangerousTypes.count)
        }
    }
}
