import Faults
import Foundation
import Testing

@testable import Mail

@Suite struct OutboxTests {
    @Test func `a letter is one file, whole, whichever attempt it is`() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(
            path: "millrace-outbox-\(UUID().uuidString)/a/b"
        ).path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let blobs = SampleBlobs([SampleBlobs.id(1): Array(repeating: 9, count: 10_000)])
        let outbox = OutboxProvider(directory: directory, blobs: blobs.source)
        let letter = Letter.sample {
            $0.bcc = [Mailbox(address: "hidden@reader.example")]
            $0.attachments = [
                .init(filename: "a.pdf", contentType: "application/pdf", blob: SampleBlobs.id(1), size: 10_000)
            ]
        }
        let name = "20260102T030405Z-01234567-89ab-4def-8123-456789abcdef.eml"
        for _ in 0..<2 { #expect(try await handOver(outbox, [letter]) == [.accepted(id: name)]) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [name])
        let bytes = Array(try Data(contentsOf: URL(filePath: "\(directory)/\(name)")))
        #expect(try await Message.wire(letter, showsBlindCopies: true).gather(from: blobs.source) == bytes)
        #expect(String(decoding: bytes, as: UTF8.self).contains("Bcc: hidden@reader.example\r\n"))
    }

    @Test func `a message that can not be written whole leaves nothing`() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "millrace-outbox-\(UUID().uuidString)")
            .path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let letter = Letter.sample {
            $0.attachments = [
                .init(filename: "a.pdf", contentType: "application/pdf", blob: SampleBlobs.id(1), size: 3)
            ]
        }
        let handover = try await handOver(OutboxProvider(directory: directory, blobs: SampleBlobs().source), [letter])[
            0]
        #expect(handover.verdict == "refused" && handover.kind == .internal)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
        let blocked = OutboxProvider(directory: "/proc/none", blobs: SampleBlobs().source)
        #expect(try await handOver(blocked, [.sample()])[0].kind == .unavailable)
    }
}
