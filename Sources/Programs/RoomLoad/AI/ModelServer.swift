import CLinux
import CommandKit
import Composition
import Glibc
import JSON
import Subprocesses
import Transfers

/// The fake of language models that stands beside this program, as a process. It ends with us.
struct ModelServer: Sendable {
    struct Figures: Sendable {
        var calls = 0
        var throttled = 0
        /// Of OpenAI's format while that was down.
        var whileDown = 0
        var faults: [String: Int] = [:]
        /// What the answers to a question said that they cost, by the question's mark.
        var told: [String: (tokensIn: Int, tokensOut: Int)] = [:]
    }

    let port: Int
    private let control: Int
    private let pid: pid_t
    private let input: Int32
    private let client = HTTPClient()

    static func start(_ script: JSONValue, program: String?) throws -> ModelServer {
        let path = try program ?? Self.beside()
        var (toChild, fromChild) = ([Int32](repeating: -1, count: 2), [Int32](repeating: -1, count: 2))
        guard millrace_pipe(&toChild, O_CLOEXEC) == 0, millrace_pipe(&fromChild, O_CLOEXEC) == 0 else {
            throw Failure("no pipe: \(errno)")
        }
        var child = Subprocess(path, [script.compact])
        child.descriptors = [(toChild[0], STDIN_FILENO), (fromChild[1], STDOUT_FILENO)]
        defer {
            close(toChild[0])
            close(fromChild[0])
            close(fromChild[1])
        }
        guard let pid = try? child.start() else { throw Failure("\(path) could not be started") }
        close(fromChild[1])
        fromChild[1] = -1
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(fromChild[0], &byte, 1) == 1, byte != UInt8(ascii: "\n") { line.append(byte) }
        guard let said = try? JSONValue.read(line), let port = said["port"]?.integer,
            let control = said["control"]?.integer
        else { throw Failure("\(path) did not say its port") }
        return ModelServer(port: port, control: control, pid: pid, input: toChild[1])
    }

    private static func beside() throws -> String {
        let path = Composer.ownPath.split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/FakeModelServer"
        guard access(path, X_OK) == 0 else {
            throw Failure(
                "there is no fake of language models at \(path)",
                hint: "build it with `swift build --product FakeModelServer`, or name it with --models")
        }
        return path
    }

    private init(port: Int, control: Int, pid: pid_t, input: Int32) {
        (self.port, self.control, self.pid, self.input) = (port, control, pid, input)
    }

    func down(_ isDown: Bool) async throws {
        _ = try await client.send(HTTPRequest("POST", "http://127.0.0.1:\(control)/\(isDown ? "down" : "up")"))
    }

    func figures() async throws -> Figures {
        let answer = try await client.send(HTTPRequest("GET", "http://127.0.0.1:\(control)/figures"))
        let said = try JSONValue.read(answer.body)
        var figures = Figures(
            calls: said["calls"]?.integer ?? 0, throttled: said["throttled"]?.integer ?? 0,
            whileDown: said["while_down"]?.integer ?? 0)
        if case .object(let faults) = said["faults"] {
            for fault in faults { figures.faults[fault.key] = fault.value.integer ?? 0 }
        }
        if case .object(let told) = said["told"] {
            for bill in told {
                figures.told[bill.key] = (bill.value["in"]?.integer ?? 0, bill.value["out"]?.integer ?? 0)
            }
        }
        return figures
    }

    func stop() {
        client.close()
        close(input)
        kill(pid, SIGTERM)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    }
}
