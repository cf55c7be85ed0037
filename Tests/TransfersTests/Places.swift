import Foundation
import Glibc

/// Holds those of this run; goes with the process. Servers that run as somebody else read what is in it.
private let place: String = {
    let path = FileManager.default.temporaryDirectory.appending(path: "millrace-http-\(UUID().uuidString.prefix(8))")
        .path
    try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    chmod(path, 0o755)
    atexit { try? FileManager.default.removeItem(atPath: place) }
    return path
}()

func temporaryDirectory() throws -> String {
    let path = "\(place)/\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    chmod(path, 0o755)
    return path
}

func write(_ text: String, to path: String) throws {
    try text.write(toFile: path, atomically: true, encoding: .utf8)
}

struct Failed: Error, CustomStringConvertible {
    let description: String
}

func bytes(of path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }

func pause(milliseconds: Int) { usleep(UInt32(milliseconds) * 1000) }

/// How many descriptors this process has open.
func openDescriptors() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }

/// Runs a line of shell from this very thread; its exit status.
func shell(_ line: String) -> Int32 { system(line) }

/// Starts a program as a careless library would, with all that is not close-on-exec in its hands; its number.
func start(_ program: String, _ arguments: [String]) throws -> pid_t {
    let words = ([program] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var process = pid_t()
    let failure = posix_spawnp(&process, program, nil, nil, words, environ)
    guard failure == 0 else { throw Failed(description: "\(program): \(String(cString: strerror(failure)))") }
    return process
}

func end(_ process: pid_t) {
    kill(process, SIGKILL)
    var status: Int32 = 0
    waitpid(process, &status, 0)
}
