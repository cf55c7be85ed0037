import JSON
import Synchronization

/// A server that answers as language models do, in the format of the path that is called. It counts tokens itself: of a prompt its bytes / 4,
/// of an answer its words.
package final class FakeModels: Sendable {
    package struct Asked: Sendable {
        /// How many came before it.
        package var number: Int
        package var isAnthropic: Bool
        package var model: String
        package var instructions: String
        package var prompt: String
        package var schema: String
        package var maxTokens: Int
        package var authorization: String?
        package var body: String
        package var isBatched = false
    }

    package enum Behaviour: Sendable {
        case answer(String)
        /// Without figures of what it did cost.
        case answerUncounted(String)
        /// With figures that are not so.
        case answerBilled(String, tokensIn: Int, tokensOut: Int)
        case refuse
        /// At the bound of tokens.
        case cutAtBound(String)
        /// The connection ends in the middle.
        case lost(String)
        /// An error within the stream.
        case failing(String)
        /// Nothing comes any more after the beginning, until the other side goes.
        case stalled(String)
        case status(Int, headers: [(String, String)], body: String)
    }

    /// What the answers said that they cost, and what was made without saying so.
    package struct Bill: Sendable, Equatable {
        package var tokensIn = 0
        package var tokensOut = 0
        package var calls = 0
    }

    private let server: RawServer
    private let notes: Notes

    final class Notes: Sendable {
        let batches = FakeModelBatches()
        let asked = Mutex<[Asked]>([])
        let told = Mutex(Bill())
        let toldByMark = Mutex<[String: Bill]>([:])
    }

    package init(_ behaviour: @escaping @Sendable (Asked) -> Behaviour) throws {
        let notes = Notes()
        self.notes = notes
        server = try RawServer { connection in
            while let head = connection.readHead() {
                let length = Self.field("content-length", of: head).flatMap { Int($0) } ?? 0
                guard let body = connection.read(exactly: length) else { return }
                if let stands = Self.answerBatches(head, body, behaviour, on: connection, notes) {
                    guard stands else { return }
                    continue
                }
                guard let asked = Self.read(head, body, notes) else {
                    connection.answer("", status: "400 Bad")
                    return
                }
                guard Self.answer(asked, behaviour(asked), on: connection, notes) else { return }
            }
        }
    }

    package var url: String { "http://127.0.0.1:\(server.port)" }
    package var asked: [Asked] { notes.asked.withLock { $0 } }
    package var told: Bill { notes.told.withLock { $0 } }
    /// By the mark of the question, for those that have one.
    package var toldByMark: [String: Bill] { notes.toldByMark.withLock { $0 } }
    package var port: Int { server.port }
    package var batches: FakeModelBatches { notes.batches }
    package func stop() { server.stop() }

    package static func tokens(in prompt: String) -> Int { prompt.utf8.count / 4 + 1 }
    package static func tokens(out answer: String) -> Int { answer.split(separator: " ").count + 1 }

    private static func field(_ name: String, of head: String) -> String? {
        for line in head.split(separator: "\r\n") where line.lowercased().hasPrefix(name + ":") {
            return String(line.dropFirst(name.count + 1).drop { $0 == " " })
        }
        return nil
    }

    private static func read(_ head: String, _ body: [UInt8], _ notes: Notes) -> Asked? {
        guard let document = try? JSONValue.read(body) else { return nil }
        let isAnthropic = head.hasPrefix("POST /v1/messages ")
        guard isAnthropic || head.hasPrefix("POST /v1/chat/completions ") else { return nil }
        return read(
            isAnthropic: isAnthropic, document,
            authorization: field("authorization", of: head) ?? field("x-api-key", of: head),
            notes)
    }

    static func read(
        isAnthropic: Bool, _ document: JSONValue, authorization: String?, _ notes: Notes
    ) -> Asked? {
        guard let messages = document["messages"]?.items, let last = messages.last?["content"]?.text else { return nil }
        let schema =
            isAnthropic
            ? document["tools"]?.items?.first?["input_schema"]
            : document["response_format"]?["json_schema"]?["schema"]
        let bound = document["max_tokens"]?.integer ?? document["max_completion_tokens"]?.integer ?? 0
        return notes.asked.withLock { all in
            let asked = Asked(
                number: all.count, isAnthropic: isAnthropic, model: document["model"]?.text ?? "",
                instructions: (isAnthropic ? document["system"]?.text : messages.first?["content"]?.text) ?? "",
                prompt: last, schema: schema?.compact ?? "", maxTokens: bound,
                authorization: authorization, body: document.compact, isBatched: document["stream"] == nil)
            all.append(asked)
            return asked
        }
    }

    /// False when the connection has ended.
    private static func answer(
        _ asked: Asked, _ behaviour: Behaviour, on connection: RawConnection, _ notes: Notes
    ) -> Bool {
        if case .status(let status, let headers, let body) = behaviour {
            let fields = headers.map { "\($0.0): \($0.1)\r\n" }.joined()
            return connection.answer(body, status: "\(status) Said", headers: fields)
        }
        var stream = FakeModelStream(asked: asked, connection: connection)
        if case .answerBilled(_, let tokensIn, let tokensOut) = behaviour { stream.billed = (tokensIn, tokensOut) }
        guard stream.begin() else { return false }
        switch behaviour {
        case .status: break
        case .answerBilled(let text, _, _):
            return stream.write(text) && stream.end(text, reason: .whole, isCounted: true)
        case .answer(let text), .answerUncounted(let text), .cutAtBound(let text):
            var isCounted = true
            var isCut = false
            if case .answerUncounted = behaviour { isCounted = false }
            if case .cutAtBound = behaviour { isCut = true }
            guard stream.write(text) else { return false }
            if isCounted { count(asked, text, notes) }
            return stream.end(text, reason: isCut ? .cut : .whole, isCounted: isCounted)
        case .refuse:
            count(asked, "", notes)
            return stream.end("", reason: .refused, isCounted: true)
        case .lost(let text):
            _ = stream.write(text)
            connection.reset()
            return false
        case .failing(let text):
            _ = stream.write(text)
            _ = stream.fail()
            return false
        case .stalled(let text):
            _ = stream.write(text)
            connection.waitForEnd()
            return false
        }
        return false
    }

    static func count(_ asked: Asked, _ text: String, _ notes: Notes) {
        func add(to bill: inout Bill) {
            bill.calls += 1
            bill.tokensIn += tokens(in: asked.prompt)
            bill.tokensOut += tokens(out: text)
        }
        notes.told.withLock { add(to: &$0) }
        guard let mark = FaultyModels.mark(in: asked.prompt) else { return }
        notes.toldByMark.withLock { add(to: &$0[mark, default: Bill()]) }
    }
}
