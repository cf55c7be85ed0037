import CommandKit
import Faults
import Glibc
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
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard client >= 0 else { return .failure(Fault(.internal, "no socket")) }
        defer { close(client) }
        var patience = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                connect(client, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { return .failure(Fault(.unavailable, code: "connect", "nobody listens there")) }
        let request = Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        guard Glibc.send(client, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            return .failure(Fault(.transient, "the request did not get through"))
        }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(client, &buffer, buffer.count, 0)
            if count <= 0 { break }
            answer += buffer[..<count]
        }
        return answer.isEmpty
            ? .failure(Fault(.unknown, "the answer did not come")) : .success(String(decoding: answer, as: UTF8.self))
    }
}
