import Faults
import FoundationEssentials
import JSON
import Supervision

/// A provider that takes many questions at once, for half the price and within a day.
protocol AIBatching: AIProvider {
    /// Whether this server has batches.
    var hasBatches: Bool { get }

    /// The body of one request of a batch.
    func batchBody(_ question: AIRequest) -> [UInt8]

    /// - Parameter uploaded: Hears the provider's id of a file with the requests before there is a batch of it.
    /// - Returns: the provider's id of the batch.
    func send(
        _ requests: [AIBatchRequest], batch: String, call: Call,
        uploaded: @Sendable (_ file: String) async throws -> Void
    ) async throws -> String

    /// Looks for a batch that an earlier run may have sent.
    func find(_ batch: String, call: Call) async throws -> AIBatchFinding

    func look(_ remote: String, call: Call) async throws -> AIBatchState

    func results(_ files: [String], call: Call) async throws -> [AIBatchResult]

    /// Deletes at the provider what a batch that has ended asked and answered. What is gone already counts as deleted.
    func forget(_ remote: String, call: Call) async throws

    /// Deletes a file of which there is no batch.
    func forgetFile(_ file: String, call: Call) async throws
}

struct AIBatchRequest: Sendable {
    /// Its name within the batch.
    var call: String
    var body: [UInt8]
}

enum AIBatchFinding: Sendable, Equatable {
    case found(String)
    case absent
    /// The format has no way to tell.
    case unknown
}

enum AIBatchState: Sendable, Equatable {
    case underWay
    /// Where its results are.
    case ended([String])
    /// The provider refused it whole, and asked nothing.
    case failed
}

/// What became of one request of a batch.
struct AIBatchResult: Sendable {
    var call: String
    /// nil: it was not answered, and cost nothing.
    var reply: AIReply?
    var tokensIn: Int?
    var tokensOut: Int?
    var kind = ErrorClass.unknown

    /// As the database takes it; nil: no call has such a name.
    var document: JSONValue? {
        guard UUID(uuidString: call) != nil else { return nil }
        var members: [JSONValue.Member] = [.init(key: "call", value: .string(call))]
        func add(_ key: String, _ value: JSONValue) { members.append(.init(key: key, value: value)) }
        // As they were told: what is not to be believed is not told, and the reservation counts.
        func addTokens(_ tokens: (in: Int?, out: Int?)) {
            let possible = 0...AIMeter.mostTokens
            guard let tokensIn = tokens.in, let tokensOut = tokens.out, possible.contains(tokensIn),
                possible.contains(tokensOut)
            else { return }
            add("tokens_in", .int(tokensIn))
            add("tokens_out", .int(tokensOut))
        }
        guard let reply else {
            add("outcome", "failed")
            add("class", .string(kind.rawValue))
            add("error", "the batch has no answer for it")
            addTokens((0, 0))
            return .object(members)
        }
        addTokens((tokensIn, tokensOut))
        let answer = AIRun.bare(reply.text)
        if reply.end == .refused {
            add("outcome", "refused")
            add("class", .string(ErrorClass.permission.rawValue))
            add("error", "the model declined to answer")
        } else if let problem = reply.end == .cut ? "it was cut" : AIRun.complaint(answer) {
            add("outcome", "unfit")
            add("class", .string(ErrorClass.invalid.rawValue))
            add("error", .string(problem))
        } else {
            add("outcome", "answered")
            add("answer", .string(answer))
        }
        return .object(members)
    }
}

enum AIBatchLines {
    /// Lines of JSON. One that is none is passed over: its question counts as not answered.
    static func read(_ bytes: [UInt8]) -> [JSONValue] {
        bytes.split(separator: UInt8(ascii: "\n")).compactMap { try? JSONValue.read(Array($0)) }
    }

    /// An id that goes into a path.
    static func id(_ value: JSONValue?) throws -> String {
        guard let id = value?.text, (1...200).contains(id.utf8.count),
            id.utf8.allSatisfy({ $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") || isLetterOrDigit($0) })
        else { throw Fault(.unknown, "the provider's answer names no id") }
        return id
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }
}
