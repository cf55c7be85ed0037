import CResolver
import Threads

/// Queries the DNS. Tests replace it with prepared answers.
package struct Resolver: Sendable {
    package enum Failure: Error, Sendable, Equatable {
        /// The question could not be put, or its server failed: nothing is known.
        case unreachable
    }

    package enum Kind: Sendable {
        case address, mail
    }

    /// The TXT records of a name, the strings of each joined; none when there is no such name.
    package var texts: @Sendable (String) async throws(Failure) -> [String]
    /// How many records of a kind a name has.
    package var count: @Sendable (String, Kind) async throws(Failure) -> Int

    package init(
        texts: @escaping @Sendable (String) async throws(Failure) -> [String],
        count: @escaping @Sendable (String, Kind) async throws(Failure) -> Int
    ) {
        self.texts = texts
        self.count = count
    }

    /// glibc's own resolver, as /etc/resolv.conf has it.
    package static let system = Resolver(
        texts: { name async throws(Failure) in
            try await ask(name, Int32(ns_t_txt.rawValue)) { answer, length in
                var texts: [String] = []
                var text = [UInt8](repeating: 0, count: 65_536)
                var index: Int32 = 0
                while true {
                    let size = millrace_text(answer, length, index, &text, Int32(text.count))
                    if size == -1 { return texts }
                    if size >= 0 { texts.append(String(decoding: text[..<Int(size)], as: UTF8.self)) }
                    index += 1
                }
            }.get() ?? []
        },
        count: { name, kind async throws(Failure) in
            switch kind {
            case .mail: return try await number(name, Int32(ns_t_mx.rawValue))
            case .address:
                let four = try await number(name, Int32(ns_t_a.rawValue))
                return four > 0 ? four : try await number(name, Int32(ns_t_aaaa.rawValue))
            }
        })

    private static func number(_ name: String, _ type: Int32) async throws(Failure) -> Int {
        try await ask(name, type) { Int(millrace_count($0, $1, type)) }.get() ?? 0
    }

    /// nil: there is no such name, or it has no record of this type. It blocks, so it has its own thread.
    private static func ask<Value: Sendable>(
        _ name: String, _ type: Int32, _ read: @escaping @Sendable ([UInt8], Int32) -> Value
    ) async -> Result<Value?, Failure> {
        await Thread.run(name: "resolver") {
            var answer = [UInt8](repeating: 0, count: 65_536)
            var failure: Int32 = 0
            let length = millrace_ask(name, type, &answer, Int32(answer.count), &failure)
            if length < 0 {
                return failure == HOST_NOT_FOUND || failure == NO_DATA ? .success(nil) : .failure(.unreachable)
            }
            return .success(read(answer, min(length, Int32(answer.count))))
        }
    }
}
