import Foundation
import Glibc
import SettingsKit
import Testing

@Suite struct PathBytesTests {
    @Test func `a file whose name is no UTF-8 is the one that is opened`() throws {
        let folder = NSTemporaryDirectory() + "millrace-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let name = Array("\(folder)/sc".utf8) + [0xe4, 0xff] + Array("n.pdf".utf8)
        let shown = String(decoding: name, as: UTF8.self)
        for argument in [name, Array("--file=".utf8) + name, Array("file:".utf8) + name] {
            let path = PathBytes.of(shown, arguments: [Array("submit".utf8), argument])
            #expect(path == name.map { CChar(bitPattern: $0) } + [0])
            let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            #expect(file >= 0)
            close(file)
        }
        #expect(PathBytes.of("plain.pdf", arguments: [name]) == Array("plain.pdf".utf8CString))
        #expect(PathBytes.of("a\u{FFFD}", arguments: [name]) == Array("a\u{FFFD}".utf8CString))
    }
}
