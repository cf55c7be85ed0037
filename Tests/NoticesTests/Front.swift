import Fakes
import Foundation
import Glibc
import TestSupport

struct Missing: Error, CustomStringConvertible {
    let program: String
    var description: String { "\(program) is not installed" }
}

enum Programs {
    static let nghttpx: String? = ["/usr/sbin/nghttpx", "/usr/bin/nghttpx"].first { path in access(path, X_OK) == 0 }
}

/// Runs `body` beside nghttpx, which speaks HTTP/2 over TLS and forwards everything to a port of this machine in HTTP/1.1.
func withFront(_ nghttpx: String, before port: Int, _ body: (_ url: String, _ authority: String) async throws -> Void)
    async throws
{
    let directory = FileManager.default.temporaryDirectory.appending(
        path: "millrace-push-\(UUID().uuidString.prefix(8))"
    ).path
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }  // the system sweeps its temporary files, too
    let (key, certificate) = ("\(directory)/key", "\(directory)/certificate")
    try await Program.check(
        "openssl",
        [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
            "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out",
            certificate,
        ])
    let front = try freePort()
    let process = Process()
    process.executableURL = URL(filePath: nghttpx)
    process.arguments = [
        "--conf=/dev/null", "--frontend=127.0.0.1,\(front)", "--backend=127.0.0.1,\(port)", "--workers=1",
        "--errorlog-file=/dev/null", "--accesslog-file=/dev/null", key, certificate,
    ]
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    func end() async throws {
        kill(process.processIdentifier, SIGKILL)
        try await eventually("nghttpx ends") { !process.isRunning }
    }
    do {
        try await eventually("nghttpx answers") { (try? RawConnection(to: front)) != nil }
        try await body("https://localhost:\(front)", certificate)
        try await end()
    } catch {
        try await end()
        throw error
    }
}
