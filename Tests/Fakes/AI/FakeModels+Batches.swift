import JSON

extension FakeModels {
    /// Answers a request about batches; nil: it is about something else. False when the connection has ended.
    static func answerBatches(
        _ head: String, _ body: [UInt8], _ behaviour: (Asked) -> Behaviour, on connection: RawConnection,
        _ notes: Notes
    ) -> Bool? {
        let parts = head.split(separator: " ", maxSplits: 2).map(String.init)
        guard parts.count > 1 else { return nil }
        let path = parts[1].split(separator: "?").first.map(String.init) ?? ""
        let isAnthropic = path.hasPrefix("/v1/messages/batches")
        switch (parts[0], path) {
        case ("POST", "/v1/files"):
            let id = notes.batches.upload(String(decoding: body, as: UTF8.self))
            return connection.answer(
                id.map { "{\"id\": \"\($0)\"}" } ?? "{}", status: id == nil ? "400 Bad" : "200 OK")
        case ("POST", "/v1/batches"), ("POST", "/v1/messages/batches"):
            switch notes.batches.make((try? JSONValue.read(body)) ?? .null, isAnthropic: isAnthropic) {
            case .made(let id): return connection.answer("{\"id\": \"\(id)\"}")
            case .refused(let status): return connection.answer("{}", status: status, headers: "retry-after: 0\r\n")
            case .lost:
                connection.reset()
                return false
            }
        case ("GET", "/v1/batches"):
            let list = notes.batches.all.filter { !$0.isAnthropic }.map(document)
            return connection.answer(JSONValue.object([.init(key: "data", value: .array(list))]).compact)
        case ("DELETE", _) where path.hasPrefix("/v1/files/") || isAnthropic:
            let id = path.split(separator: "/").last.map(String.init) ?? ""
            return connection.answer("{}", status: notes.batches.delete(id))
        case ("GET", _) where path.hasPrefix("/v1/files/") || path.hasPrefix("/v1/batches/") || isAnthropic:
            return answer(path.split(separator: "/").map(String.init), behaviour, on: connection, notes)
        default: return nil
        }
    }

    private static func answer(
        _ path: [String], _ behaviour: (Asked) -> Behaviour, on connection: RawConnection, _ notes: Notes
    ) -> Bool {
        if path.last == "results" || path.last == "content" {
            guard let results = notes.batches.results(path[path.count - 2]) else {
                return connection.answer("{}", status: "404 None")
            }
            return connection.answer(results)
        }
        let found = notes.batches.look(path.last ?? "") { results($0, behaviour, notes) }
        guard let found else { return connection.answer("{}", status: "404 None") }
        return connection.answer(document(found).compact)
    }

    private static func document(_ batch: FakeModelBatches.Batch) -> JSONValue {
        let hasEnded = batch.output != nil
        if batch.isAnthropic {
            return [
                "id": .string(batch.id), "processing_status": hasEnded ? "ended" : "in_progress",
                "results_url": "http://elsewhere.example/results",
            ]
        }
        return [
            "id": .string(batch.id), "status": hasEnded ? "completed" : "in_progress",
            "input_file_id": batch.file.map { .string($0) } ?? .null,
            "output_file_id": (batch.output ?? "").isEmpty ? .null : .string(batch.id),
            "error_file_id": batch.errors.isEmpty ? .null : .string("\(batch.id)-errors"),
            "metadata": ["millrace_batch": batch.name.map { .string($0) } ?? .null],
        ]
    }

    private static func results(
        _ batch: FakeModelBatches.Batch, _ behaviour: (Asked) -> Behaviour, _ notes: Notes
    ) -> (output: String, errors: String) {
        var output = ""
        var errors = ""
        for request in batch.requests.reversed() {
            let body = request.body
            guard body["stream"] == nil,
                let asked = read(isAnthropic: batch.isAnthropic, body, authorization: nil, notes)
            else { continue }
            let line = line(asked, behaviour(asked), notes)
            if batch.isAnthropic {
                let result: JSONValue = ["custom_id": .string(request.call), "result": line ?? .null]
                output += result.compact + "\n"
                continue
            }
            let result: JSONValue = [
                "custom_id": .string(request.call), "response": line ?? .null,
                "error": line == nil ? ["code": "batch_expired"] : .null,
            ]
            if line?["status_code"]?.integer == 200 {
                output += result.compact + "\n"
            } else {
                errors += result.compact + "\n"
            }
        }
        return (output, errors)
    }

    /// The result of one request; nil: it expired, in OpenAI's format.
    private static func line(_ asked: Asked, _ behaviour: Behaviour, _ notes: Notes) -> JSONValue? {
        switch behaviour {
        case .answer(let text):
            count(asked, text, notes)
            return asked.isAnthropic ? message(asked, text, "tool_use") : completion(asked, text, "stop")
        case .answerBilled(let text, let tokensIn, let tokensOut):
            let billed = (tokensIn, tokensOut)
            return asked.isAnthropic
                ? message(asked, text, "tool_use", billed) : completion(asked, text, "stop", billed)
        case .cutAtBound(let text):
            count(asked, text, notes)
            return asked.isAnthropic ? message(asked, text, "max_tokens") : completion(asked, text, "length")
        case .refuse:
            count(asked, "", notes)
            return asked.isAnthropic ? message(asked, "", "refusal") : completion(asked, "", "content_filter")
        case .status, .failing:
            return
                asked.isAnthropic
                ? ["type": "errored", "error": ["error": ["type": "api_error"]]]
                : ["status_code": 500, "body": ["error": ["code": "server_error"]]]
        case .lost, .stalled, .answerUncounted:
            return asked.isAnthropic ? ["type": "expired"] : nil
        }
    }

    private static func message(
        _ asked: Asked, _ text: String, _ stop: String, _ billed: (tokensIn: Int, tokensOut: Int)? = nil
    ) -> JSONValue {
        [
            "type": "succeeded",
            "message": [
                "content": text.isEmpty ? [] : [["type": "tool_use", "name": "answer", "input": .raw(text)]],
                "stop_reason": .string(stop),
                "usage": [
                    "input_tokens": .int(billed?.tokensIn ?? tokens(in: asked.prompt)),
                    "output_tokens": .int(billed?.tokensOut ?? tokens(out: text)),
                ],
            ],
        ]
    }

    private static func completion(
        _ asked: Asked, _ text: String, _ finish: String, _ billed: (tokensIn: Int, tokensOut: Int)? = nil
    ) -> JSONValue {
        [
            "status_code": 200,
            "body": [
                "choices": [["message": ["content": .string(text)], "finish_reason": .string(finish)]],
                "usage": [
                    "prompt_tokens": .int(billed?.tokensIn ?? tokens(in: asked.prompt)),
                    "completion_tokens": .int(billed?.tokensOut ?? tokens(out: text)),
                ],
            ],
        ]
    }
}
