import CCrypto
import Glibc

/// The head of a request as a fake reads it.
struct FakeRequest {
    var method = ""
    var path = ""
    private var fields: [String: String] = [:]

    init?(_ head: String) {
        var lines = head.split(separator: "\r\n", omittingEmptySubsequences: true)[...]
        guard let first = lines.popFirst() else { return nil }
        let words = first.split(separator: " ")
        guard words.count == 3 else { return nil }
        method = String(words[0])
        path = String(words[1])
        for line in lines {
            guard let colon = line.firstIndex(of: ":") else { continue }
            var value = line[line.index(after: colon)...]
            while value.first == " " { value.removeFirst() }
            fields[line[..<colon].lowercased()] = String(value)
        }
    }

    subscript(name: String) -> String? { fields[name] }
    var length: Int { fields["content-length"].flatMap { Int($0) } ?? 0 }
}

extension RawConnection {
    /// Hands `count` bytes on as they come; false when the connection ends before.
    func read(exactly count: Int, _ take: ([UInt8]) -> Void) -> Bool {
        var left = count
        while left > 0 {
            guard var more = read() else { return false }
            if more.count > left {
                put(back: Array(more[left...]))
                more.removeSubrange(left...)
            }
            left -= more.count
            take(more)
        }
        return true
    }
}

/// A SHA-256 that grows; `@unchecked` is not needed: one thread has it.
final class BodyHash {
    private let context: OpaquePointer

    init() {
        guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
            preconditionFailure("libcrypto has no memory left")
        }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    func add(_ bytes: [UInt8]) { EVP_DigestUpdate(context, bytes, bytes.count) }

    func end() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        EVP_DigestFinal_ex(context, &digest, nil)
        return digest
    }
}
