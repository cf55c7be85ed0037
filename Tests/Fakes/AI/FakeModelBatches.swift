import JSON
import Synchronization

/// The batches of a fake, in both formats. A batch is answered when it has been looked at a few times; its results come last first.
package final class FakeModelBatches: Sendable {
    package struct Faults: Sendable {
        /// How often a batch is said to be under way.
        package var looks = 2
        /// How many answers to the request that makes a batch are lost, after it was made.
        package var lostAnswers = 0
        /// How many such requests are refused with 429 before.
        package var refusals = 0
        /// Batches with more requests are refused.
        package var most = 1000
        /// How many requests that delete something fail.
        package var failedDeletions = 0
    }

    struct Batch: Sendable {
        var id: String
        var isAnthropic: Bool
        var name: String?
        /// With its requests, in OpenAI's format.
        var file: String?
        var requests: [(call: String, body: JSONValue)]
        var looks = 0
        /// Made once, when it ends.
        var output: String?
        var errors = ""
    }

    struct State: Sendable {
        var faults = Faults()
        var files: [String: String] = [:]
        var batches: [Batch] = []
        /// Results that were deleted.
        var deleted: Set<String> = []
        var uploads = 0
    }

    let state = Mutex(State())

    package init() {}

    package func set(_ change: (inout Faults) -> Void) { state.withLock { change(&$0.faults) } }
    /// Nobody knows the batches any more.
    package func forget() { state.withLock { $0.batches = [] } }
    package var count: Int { state.withLock { $0.batches.count } }
    /// How many have been made of each question's call.
    package var calls: [String] { state.withLock { $0.batches.flatMap { $0.requests.map(\.call) } } }
    package var sizes: [Int] { state.withLock { $0.batches.map(\.requests.count) } }

    /// A file of OpenAI's format, with a line for each request.
    func upload(_ body: String) -> String? {
        guard body.contains("name=\"purpose\"\r\n\r\nbatch\r\n"), let start = body.firstRange(of: "jsonl\r\n\r\n"),
            let end = body[start.upperBound...].firstRange(of: "\r\n--")
        else { return nil }
        return state.withLock { state in
            let id = "file-\(state.uploads)"
            state.uploads += 1
            state.files[id] = String(body[start.upperBound..<end.lowerBound])
            return id
        }
    }

    enum Made: Sendable {
        case made(String)
        case lost
        case refused(status: String)
    }

    func make(_ document: JSONValue, isAnthropic: Bool) -> Made {
        state.withLock { state in
            if state.faults.refusals > 0 {
                state.faults.refusals -= 1
                return .refused(status: "429 Too Many")
            }
            let named = isAnthropic ? Self.listed(document) : Self.inFile(document, state)
            guard let requests = named, !requests.isEmpty, requests.count <= state.faults.most,
                Set(requests.map(\.call)).count == requests.count
            else { return .refused(status: "400 Bad") }
            let id = (isAnthropic ? "msgbatch_" : "batch_") + "\(state.batches.count)"
            state.batches.append(
                Batch(
                    id: id, isAnthropic: isAnthropic, name: document["metadata"]?["millrace_batch"]?.text,
                    file: document["input_file_id"]?.text, requests: requests))
            guard state.faults.lostAnswers > 0 else { return .made(id) }
            state.faults.lostAnswers -= 1
            return .lost
        }
    }

    private static func listed(_ document: JSONValue) -> [(call: String, body: JSONValue)]? {
        document["requests"]?.items?.compactMap { one in
            guard let call = one["custom_id"]?.text, let body = one["params"] else { return nil }
            return (call, body)
        }
    }

    private static func inFile(_ document: JSONValue, _ state: State) -> [(call: String, body: JSONValue)]? {
        guard document["endpoint"]?.text == "/v1/chat/completions", document["completion_window"]?.text == "24h",
            let file = document["input_file_id"]?.text.flatMap({ state.files[$0] })
        else { return nil }
        let lines = file.split(separator: "\n").map { try? JSONValue.read(String($0)) }
        let requests = lines.compactMap { line -> (call: String, body: JSONValue)? in
            guard let call = line?["custom_id"]?.text, line?["url"]?.text == "/v1/chat/completions",
                let body = line?["body"]
            else { return nil }
            return (call, body)
        }
        // One model to a batch, and no line that is malformed.
        return requests.count == lines.count && Set(requests.map { $0.body["model"]?.text ?? "" }).count == 1
            ? requests : nil
    }

    /// A batch as it is now; nil: there is none of this name. The last look makes its results.
    func look(_ id: String, results: (Batch) -> (output: String, errors: String)) -> Batch? {
        state.withLock { state in
            guard let place = state.batches.firstIndex(where: { $0.id == id }),
                !state.batches[place].isAnthropic || !state.deleted.contains(id)
            else { return nil }
            state.batches[place].looks += 1
            if state.batches[place].looks > state.faults.looks, state.batches[place].output == nil {
                let made = results(state.batches[place])
                state.batches[place].output = made.output
                state.batches[place].errors = made.errors
            }
            return state.batches[place]
        }
    }

    /// Deletes a file, or a batch of Anthropic's format with its results.
    ///
    /// - Returns: the status of the answer.
    func delete(_ id: String) -> String {
        state.withLock { state in
            if state.faults.failedDeletions > 0 {
                state.faults.failedDeletions -= 1
                return "500 Broken"
            }
            if state.files.removeValue(forKey: id) != nil { return "200 OK" }
            guard Self.results(state).contains(id) else {
                let isUnderWay = state.batches.contains { $0.id == id && $0.isAnthropic && $0.output == nil }
                return isUnderWay ? "400 Bad" : "404 None"
            }
            state.deleted.insert(id)
            return "200 OK"
        }
    }

    /// Files with requests, and results, that nobody has deleted.
    package var kept: [String] {
        state.withLock { state in (state.files.keys + Self.results(state)).sorted() }
    }

    private static func results(_ state: State) -> [String] {
        state.batches.flatMap { batch in
            guard let output = batch.output else { return [String]() }
            if batch.isAnthropic { return [batch.id] }
            return (output.isEmpty ? [] : [batch.id]) + (batch.errors.isEmpty ? [] : ["\(batch.id)-errors"])
        }.filter { !state.deleted.contains($0) }
    }

    /// The results of a batch by their name; nil: there are none, or none any more.
    func results(_ name: String) -> String? {
        state.withLock { state in
            guard Self.results(state).contains(name) else { return nil }
            let isOfErrors = name.hasSuffix("-errors")
            let batch = state.batches.first { $0.id == (isOfErrors ? String(name.dropLast(7)) : name) }
            return isOfErrors ? batch?.errors : batch?.output
        }
    }

    var all: [Batch] { state.withLock { $0.batches } }
}
