import Foundation
import TestSupport

/// One request over a plain socket, as no browser would send it, and what came back until the other side closed.
struct RawAnswer: Sendable {
    let status: Int
    let head: String
    let body: String

    func header(_ name: String) -> String? {
        for line in head.split(separator: "\r\n").dropFirst() {
            let halves = line.split(separator: ":", maxSplits: 1)
            if halves.count == 2, halves[0].lowercased() == name.lowercased() {
                return halves[1].trimmingCharacters(in: .whitespaces)
            }
        }
        return nil
    }

    static func get(_ path: String, host: String, _ headers: [(String, String)] = [], port: UInt16) async throws
        -> RawAnswer
    {
        try await ask("GET \(path) HTTP/1.1", host: host, headers, port: port)
    }

    static func ask(
        _ line: String, host: String?, _ headers: [(String, String)] = [], body: String = "", port: UInt16
    ) async throws -> RawAnswer {
        let all = (host.map { [("Host", $0)] } ?? []) + [("Connection", "close")] + headers
        let text = line + "\r\n" + all.map { "\($0.0): \($0.1)\r\n" }.joined() + "\r\n" + body
        let answer = try await LocalSocket.exchange(Array(text.utf8), port: port)
        return parsed(String(decoding: answer, as: UTF8.self))
    }

    private static func parsed(_ text: String) -> RawAnswer {
        let halves = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
        let words = text.prefix(40).split(separator: " ")
        guard words.count > 1, let status = Int(words[1]) else {
            return RawAnswer(status: 0, head: text, body: "")
        }
        return RawAnswer(
            status: status, head: String(halves[0]), body: halves.count > 1 ? String(halves[1]) : "")
    }
}
