/// Sends requests, each under the client's one policy. Its connections serve no other policy.
package final class HTTPClient: Sendable {
    package struct Configuration: Sendable {
        package var userAgent = "Millrace"
        package var policy = TargetPolicy.trusted
        package var loop = TransferLoop.Settings()

        package init() {}

        /// For addresses that users give, such as those of webhooks.
        package static func strict(_ allowed: AllowedHosts = .none) -> Configuration {
            var configuration = Configuration()
            configuration.policy = .strict(allowed)
            return configuration
        }
    }

    let configuration: Configuration
    let loop: TransferLoop

    package convenience init(_ configuration: Configuration = Configuration()) {
        self.init(configuration, on: TransferLoop(configuration.loop))
    }

    init(_ configuration: Configuration, on loop: TransferLoop) {
        precondition(
            HTTPHeaders(dictionaryLiteral: ("User-Agent", configuration.userAgent)).complaint == nil
                && !configuration.userAgent.isEmpty, "a client needs a name that is allowed in a header")
        self.configuration = configuration
        self.loop = loop
    }

    /// Running transfers fail, and so do later ones.
    package func close() { loop.close() }

    /// The whole answer, with any status. Cancelling the task ends the transfer.
    package func send(_ request: HTTPRequest) async throws(TransferError) -> HTTPResponse {
        let deadline = ContinuousClock.now + request.limits.total
        var route = try RedirectRoute(request)
        while true {
            let response = try await sendOnce(route.request, to: route.target, deadline: deadline)
            guard try route.follow(response.head) else { return response }
        }
    }

    private func sendOnce(
        _ request: HTTPRequest, to target: Target, deadline: ContinuousClock.Instant
    ) async throws(TransferError) -> HTTPResponse {
        let plan = try TransferPlan(request, to: target, by: configuration)
        guard case .stream(let length, let next) = request.body else {
            return try await whole(Transfer(plan, upload: nil, deadline: deadline, in: loop.census)).get()
        }
        let upload = Upload(length: length)
        let transfer = Transfer(plan, upload: upload, deadline: deadline, in: loop.census)
        async let _: Void = upload.fill(from: next) { self.loop.goOn(transfer) }
        return try await whole(transfer).get()  // leaving ends the filling
    }

    private func whole(_ transfer: Transfer) async -> Result<HTTPResponse, TransferError> {
        await withTaskCancellationHandler {
            await withCheckedContinuation { loop.start(transfer, .whole($0)) }
        } onCancel: {
            loop.giveUp(transfer)
        }
    }
}
