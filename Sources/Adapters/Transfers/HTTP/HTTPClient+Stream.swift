/// A body that is read as it comes. What is not read holds up the sender.
package struct HTTPBody: Sendable {
    let transfer: Transfer
    let download: Download
    let loop: TransferLoop

    /// The bytes that have come since, at least one; nil at the end. There is one reader.
    package func next() async throws(TransferError) -> [UInt8]? {
        guard let (bytes, goOn) = try await download.take() else { return nil }
        if goOn { loop.goOn(transfer) }
        return bytes
    }
}

extension HTTPClient {
    /// Gives the head and the body as it comes. The transfer ends with `read`, whether all was read or not. Redirects are answers.
    package func stream<Value>(
        _ request: HTTPRequest, _ read: (HTTPHead, HTTPBody) async throws -> Value
    ) async throws -> Value {
        let plan = try TransferPlan(request, to: try Target(request.url), by: configuration)
        var upload: Upload?
        if case .stream(let length, _) = request.body { upload = Upload(length: length) }
        let transfer = Transfer(plan, upload: upload, deadline: .now + request.limits.total, in: loop.census)
        async let _: Void = fill(upload, from: request.body, for: transfer)
        let download = Download()
        loop.start(transfer, .pieces(download))
        return try await withTaskCancellationHandler {
            do {
                let head = try await download.head()
                let value = try await read(head, HTTPBody(transfer: transfer, download: download, loop: loop))
                await letGo(transfer, download)
                return value
            } catch {
                await letGo(transfer, download)
                throw error
            }
        } onCancel: {
            loop.giveUp(transfer)
        }
    }

    private func letGo(_ transfer: Transfer, _ download: Download) async {
        loop.giveUp(transfer)
        _ = await download.ended()
    }

    private func fill(_ upload: Upload?, from body: HTTPRequest.Body, for transfer: Transfer) async {
        guard let upload, case .stream(_, let next) = body else { return }
        await upload.fill(from: next) { self.loop.goOn(transfer) }
    }
}
