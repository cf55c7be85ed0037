import CommandKit
import Faults
import Glibc
import LoadKit
import Supervision
import Threads

/// One request to the scripted provider, on its own thread, with the little HTTP that the provider speaks.
enum PlainRequest {
    static func send(to port: UInt16, as call: Call) async throws(Fault) {
        let answer = await Thread.run(name: "plain-request") { ask(port) }
        let text = try answer.get()
        let lines = text.split(separator: "\r\n")
        guard let status = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
            throw Fault(.unknown, "no answer")
        }
        let headers = lines.dropFirst().compactMap { line -> (name: String, value: String)? in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return (String(line[..<colon]), String(line[line.index(after: colon)...].drop { $0 == " " }))
        }
        let notes = RateNotes(headers: headers, now: Double(time(nil)))
        call.heard(notes)
        if let kind = ErrorClass(http: status) {
            throw Fault(kind, code: "\(status)", "the provider answered \(status)", wait: notes.retryAfter)
        }
    }

    private static func ask(_ port: UInt16) -> Result<String, Fault> {
        guard let client = Loopback.connection(to: port) else {
            return .failure(Fault(.unavailable, code: "connect", "nobody listens there"))
        }
        defer { close(client) }
        var patience = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let request = Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        guard Glibc.send(client, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            return .failure(Fault(.transient, "the request did not get through"))
        }
        let answer = Loopback.heard(from: client)
        return answer.isEmpty
            ? .failure(Fault(.unknown, "the answer did not come")) : .success(String(decoding: answer, as: UTF8.self))
    }
}
