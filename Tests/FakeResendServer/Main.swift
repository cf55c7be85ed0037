import Fakes
import FoundationEssentials
import Glibc

/// The fake of Resend as a process: prints its ports as a line of JSON, and runs until it is ended. Takes a script as JSON.
@main struct Main {
    static func main() throws {
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "--help" {
            print("Usage: FakeResendServer ['{\"keys\": [\"re_test\"], \"rate\": 2, …}']")
            print(
                "Prints {\"port\": …, \"control\": …}. Control: GET and PATCH /script, GET /figures, /events, /accepted?from=<n>."
            )
            return
        }
        let fake = try FakeResend()
        let control = try ResendControl(fake)
        if let text = arguments.first {
            let client = try RawConnection(to: control.port)
            client.write("PATCH /script HTTP/1.1\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")
            guard let head = client.readHead(), head.hasPrefix("HTTP/1.1 200") else {
                print("error: this is no script: \(text)")
                exit(2)
            }
        }
        let line = "{\"port\":\(fake.port),\"control\":\(control.port)}\n"
        _ = write(1, line, line.utf8.count)  // unbuffered, so that the reader gets it at once
        while true { sleep(3600) }
    }
}
