import Faults
import FoundationEssentials
import JSON
import Supervision
import Transfers

/// The calls about batches. Their answers are whole documents, or lines of them.
extension AITransfer {
    static func batchRequest(
        _ method: String, _ base: String, _ path: String, _ body: [UInt8]?, type: String
    ) -> HTTPRequest {
        var request = HTTPRequest(method, address(base, path), body: body.map { .bytes($0) } ?? .none)
        if body != nil { request.headers.add("Content-Type", type) }
        request.limits.total = .seconds(240)
        request.limits.stall = .seconds(60)
        request.limits.bodyBytes = 128 << 20
        return request
    }

    /// - Throws: a `Fault`.
    func whole(_ request: HTTPRequest, call: Call) async throws -> [UInt8] {
        try await answer(request, call: call) { $0 == 200 }
    }

    /// What is gone already counts as deleted.
    ///
    /// - Throws: a `Fault`.
    func delete(_ request: HTTPRequest, call: Call) async throws {
        _ = try await answer(request, call: call) { (200..<300).contains($0) || [404, 410].contains($0) }
    }

    private func answer(
        _ request: HTTPRequest, call: Call, isGood: (_ status: Int) -> Bool
    ) async throws -> [UInt8] {
        do {
            let response = try await client.send(request)
            call.heard(AIPace.notes(response.headers.pairs, now: Date().timeIntervalSince1970))
            guard isGood(response.status) else { throw AIPace.fault(response.head, response.body) }
            return response.body
        } catch let error as TransferError {
            throw Fault(transfer: error)
        }
    }

    func document(_ request: HTTPRequest, call: Call) async throws -> JSONValue {
        do {
            return try JSONValue.read(try await whole(request, call: call))
        } catch let problem as JSONProblem {
            throw Fault(.unknown, "the answer is not JSON: \(problem.complaint)")
        }
    }
}
