import Foundation

/// The gateway's intake of operations.
struct SyncCalls: Sendable {
    let calls: AppCalls

    /// One answer for each operation, or an error for all.
    func push(
        _ operations: [QueuedOperation], device: String, as credential: AppCalls.Credential, patience: Duration
    ) async throws -> [Answer] {
        var request = try calls.post(
            "v1/sync", Push(device: device, ops: operations.map(Push.Operation.init)), name: "sync_push")
        request.isUrgent = operations.contains(where: \.isUrgent)
        request.credential = credential
        request.patience = patience
        request.retry = RetryRules.none  // the queue itself tries again
        let answered: Answered = try AppCalls.decoded(try await calls.send(request))
        return answered.results
    }

    /// A token that is good for the intake only, also when the sign-in is over.
    func addDevice(_ device: String, name: String?) async throws -> String {
        let answer: Token = try AppCalls.decoded(
            try await calls.send(
                try calls.post("v1/sync/devices", NewDevice(device: device, name: name), name: "sync_device_add")))
        return answer.token
    }

    func removeDevice(_ device: String) async throws {
        _ = try await calls.send(
            AppCalls.Request(
                name: "sync_device_remove", method: "DELETE", url: calls.address("v1/sync/devices/\(device)")))
    }

    struct Answer: Decodable, Sendable {
        let id: UUID
        let outcome: String
        var `class`: String?
        var field: String?
        var message: String?
        var hint: String?
        var userMessage: String?
        var result: AppValue?

        var error: AppError? {
            guard outcome == "refused" || outcome == "conflict" else { return nil }
            let known = self.class.flatMap(AppError.ErrorClass.init(rawValue:))
            var error = AppError(
                known ?? .conflict, message ?? "the operation was not done",
                userMessage: userMessage, field: field, hint: hint, quota: quota)
            error.isFromGateway = true
            return error
        }

        private var quota: QuotaError? {
            guard let limit = result?["limit"]?.int, let used = result?["used"]?.int else { return nil }
            return QuotaError(
                limit: limit, used: used, resetDate: result?["reset_date"]?.string.flatMap(InstantCoding.date))
        }
    }

    private struct Answered: Decodable {
        let results: [Answer]
    }
    private struct Token: Decodable {
        let token: String
    }
    private struct NewDevice: Encodable {
        let device: String
        let name: String?
    }
    private struct Push: Encodable {
        let device: String
        let ops: [Operation]

        struct Operation: Encodable {
            let id: String
            let op: String
            let at: Date
            let args: [String: AppValue]

            init(_ operation: QueuedOperation) {
                (id, op) = (operation.id.uuidString.lowercased(), operation.op)
                (at, args) = (operation.at, operation.args)
            }
        }
    }
}
