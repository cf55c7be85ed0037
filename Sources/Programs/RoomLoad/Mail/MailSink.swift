import CommandKit
import Glibc
import LoadKit
import Synchronization

/// A mail server on loopback that takes everything, counts it and keeps nothing.
final class MailSink: Sendable {
    private let server: Loopback.Server
    private let count = Atomic(0)

    /// How many messages it has taken.
    var taken: Int { count.load(ordering: .relaxed) }

    init() throws {
        server = try Loopback.Server()
        server.start("mail-session") { self.serve($0) }
    }

    var port: UInt16 { server.port }

    func stop() { server.stop() }

    private func serve(_ client: Int32) {
        // Several short answers in a row would each wait for the other side's late acknowledgement.
        var isOn: Int32 = 1
        setsockopt(client, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
        var answers: [UInt8] = []
        func say(_ text: String) { answers += Array((text + "\r\n").utf8) }
        func flush() {
            _ = send(client, answers, answers.count, Int32(MSG_NOSIGNAL))
            answers = []
        }
        say("220 sink ESMTP")
        flush()
        var buffer: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        var isData = false
        while true {
            // Lines while commands are awaited; within a message only its end counts.
            while let end = buffer.firstRange(of: isData ? [13, 10, 46, 13, 10] : [13, 10]) {
                let line = isData ? [] : Array(buffer[..<end.lowerBound])
                buffer.removeSubrange(..<end.upperBound)
                if isData {
                    isData = false
                    count.add(1, ordering: .relaxed)
                    say("250 taken")
                    continue
                }
                switch String(decoding: line.prefix(4), as: UTF8.self).uppercased() {
                case "EHLO": say("250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SMTPUTF8")
                case "DATA":
                    isData = true
                    say("354 go on")
                case "QUIT":
                    say("221 bye")
                    return flush()
                default: say("250 ok")
                }
            }
            if !answers.isEmpty { flush() }
            let got = recv(client, &chunk, chunk.count, 0)
            guard got > 0, buffer.count < 64 << 20 else { return }
            buffer += chunk[..<got]
        }
    }
}
