import JSON

/// An answer as a stream of events, in one of the two formats. Its pieces are small, and one event is split over two writes.
struct FakeModelStream {
    enum Reason {
        case whole, cut, refused
    }

    let asked: FakeModels.Asked
    let connection: RawConnection
    /// What it says that it did cost, whatever it did.
    var billed: (tokensIn: Int, tokensOut: Int)?

    func begin() -> Bool {
        guard
            connection.write(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
                    + "x-ratelimit-limit-requests: 60000\r\nx-ratelimit-remaining-requests: 59999\r\nx-ratelimit-reset-requests: 1s\r\n\r\n"
            )
        else { return false }
        guard asked.isAnthropic else { return true }
        let tokens = billed?.tokensIn ?? FakeModels.tokens(in: asked.prompt)
        return event(
            "message_start",
            ["type": "message_start", "message": ["usage": ["input_tokens": .int(tokens), "output_tokens": 1]]])
            && event(
                "content_block_start",
                ["type": "content_block_start", "content_block": ["type": "tool_use", "name": "answer", "input": [:]]])
            && event("ping", ["type": "ping"])
    }

    func write(_ text: String) -> Bool {
        let characters = Array(text)
        for start in stride(from: 0, to: characters.count, by: 40) {
            let piece = String(characters[start..<min(start + 40, characters.count)])
            let isWritten =
                asked.isAnthropic
                ? event(
                    "content_block_delta",
                    [
                        "type": "content_block_delta",
                        "delta": ["type": "input_json_delta", "partial_json": .string(piece)],
                    ])
                : event(nil, ["choices": [["delta": ["content": .string(piece)], "finish_reason": .null]]])
            guard isWritten else { return false }
        }
        return true
    }

    func end(_ text: String, reason: Reason, isCounted: Bool) -> Bool {
        let out = billed?.tokensOut ?? FakeModels.tokens(out: text)
        if asked.isAnthropic {
            let stop = ["whole": "tool_use", "cut": "max_tokens", "refused": "refusal"]["\(reason)"] ?? ""
            var delta: [JSONValue.Member] = [
                .init(key: "type", value: "message_delta"),
                .init(key: "delta", value: ["stop_reason": .string(stop)]),
            ]
            if isCounted { delta.append(.init(key: "usage", value: ["output_tokens": .int(out)])) }
            return event("content_block_stop", ["type": "content_block_stop"]) && event("message_delta", .object(delta))
                && event("message_stop", ["type": "message_stop"]) && connection.write("0\r\n\r\n")
        }
        let finish = ["whole": "stop", "cut": "length", "refused": "content_filter"]["\(reason)"] ?? ""
        guard event(nil, ["choices": [["delta": [:], "finish_reason": .string(finish)]]]) else { return false }
        if isCounted {
            let usage: JSONValue = [
                "prompt_tokens": .int(billed?.tokensIn ?? FakeModels.tokens(in: asked.prompt)),
                "completion_tokens": .int(out),
            ]
            guard event(nil, ["choices": [], "usage": usage]) else { return false }
        }
        return chunk("data: [DONE]\n\n") && connection.write("0\r\n\r\n")
    }

    func fail() -> Bool {
        event("error", ["type": "error", "error": ["type": "overloaded_error", "message": "busy"]])
    }

    private func event(_ name: String?, _ data: JSONValue) -> Bool {
        let text = (name.map { "event: \($0)\n" } ?? "") + "data: \(data.compact)\n\n"
        let middle = text.index(text.startIndex, offsetBy: text.count / 2)
        return chunk(String(text[..<middle])) && chunk(String(text[middle...]))
    }

    private func chunk(_ text: String) -> Bool {
        connection.write("\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n")
    }
}
