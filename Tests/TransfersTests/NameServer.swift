import Foundation
import Glibc
import Synchronization
import Threads

/// A network of its own for one thread and what that starts: an interface with loopback and a public address, a name server that
/// answers each question with the next of a list, and nothing else.
final class TinyNetwork: Sendable {
    /// Answered in turn, the last one for ever.
    private let answers: [[UInt8]]
    private let asked = Mutex(0)
    let publicAddress = "93.184.216.34"

    var questions: Int { asked.withLock { $0 } }

    init(answers: [[UInt8]]) { self.answers = answers }

    /// Leaves the calling thread in the new network; says what the system refused.
    func enter() throws {
        typealias Unshare = @convention(c) (Int32) -> Int32
        guard let symbol = dlsym(nil, "unshare") else { throw Failed(description: "no unshare") }
        let unshare = unsafeBitCast(symbol, to: Unshare.self)
        let (newNetwork, newMounts): (Int32, Int32) = (0x4000_0000, 0x0002_0000)
        guard unshare(newNetwork | newMounts) == 0 else {
            throw Failed(description: "unshare: \(String(cString: strerror(errno)))")
        }
        let (bind, recursive, isPrivate): (UInt, UInt, UInt) = (4096, 16384, 1 << 18)
        guard mount("none", "/", nil, recursive | isPrivate, nil) == 0 else {
            throw Failed(description: "mount: \(String(cString: strerror(errno)))")
        }
        let file = "\(try temporaryDirectory())/resolv.conf"
        try write("nameserver 127.0.0.1\noptions timeout:2 attempts:2\n", to: file)
        guard mount(file, "/etc/resolv.conf", nil, bind, nil) == 0 else {
            throw Failed(description: "mount: \(String(cString: strerror(errno)))")
        }
        for command in ["ip link set lo up", "ip addr add \(publicAddress)/32 dev lo"] {
            // A child made from this thread lives in its network.
            guard system(command) == 0 else { throw Failed(description: "\(command) failed") }
        }
        try serve()
    }

    private func serve() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = in_port_t(53).bigEndian
        name.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        let bound = withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard bound else { throw Failed(description: "port 53: \(String(cString: strerror(errno)))") }
        Thread.start(name: "name-server") { [self] in
            var buffer = [UInt8](repeating: 0, count: 512)
            while true {
                var from = sockaddr_in()
                var length = socklen_t(MemoryLayout<sockaddr_in>.size)
                let count = withUnsafeMutablePointer(to: &from) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        recvfrom(descriptor, &buffer, 512, 0, $0, &length)
                    }
                }
                guard count > 12 else { continue }
                let reply = answer(Array(buffer[..<count]))
                _ = withUnsafePointer(to: &from) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        sendto(descriptor, reply, reply.count, 0, $0, length)
                    }
                }
            }
        }
    }

    /// A question for an IPv4 address gets the next one, with no time to live; any other gets none.
    private func answer(_ question: [UInt8]) -> [UInt8] {
        var end = 12
        while end < question.count, question[end] != 0 { end += Int(question[end]) + 1 }
        end += 5
        guard end <= question.count else { return question }
        let isForFour = question[end - 4] == 0 && question[end - 3] == 1
        var reply = Array(question[..<end])
        (reply[2], reply[3]) = (0x84, 0x00)
        reply.replaceSubrange(6..<12, with: [0, isForFour ? 1 : 0, 0, 0, 0, 0])
        guard isForFour else { return reply }
        let turn = asked.withLock { asked in
            asked += 1
            return asked
        }
        return reply + [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4] + answers[min(turn, answers.count) - 1]
    }
}
