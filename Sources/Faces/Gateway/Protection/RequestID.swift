import Encodings
import Listeners

/// The name of one request, for its answer and the log: the client's, or one that is made here.
enum RequestID {
    static func of(_ headers: [Header]) -> String {
        if let given = headers["X-Request-Id"], isGood(given) { return given }
        return Hexadecimal.text((0..<8).map { _ in UInt8.random(in: .min ... .max) })
    }

    static func isGood(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (byte | 0x20) &- 97 < 26 || byte &- 48 < 10 || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
                    || byte == UInt8(ascii: "-")
            }
    }
}
