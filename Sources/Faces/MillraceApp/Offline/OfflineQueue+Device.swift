/// The device, by whose token the queue is told when the sign-in is over.
extension OfflineQueue {
    /// With the device's token, which needs no sign-in; else with the sign-in, which gets one.
    func push(_ batch: [QueuedOperation]) async throws -> [SyncCalls.Answer] {
        let configuration = sync.calls.configuration
        let patience = batch.count <= 20 ? configuration.shortPatience : configuration.patience
        if let token = device.token {
            do {
                return try await sync.push(batch, device: device.device, as: .device(token), patience: patience)
            } catch let error as AppError where error.kind == .unauthenticated {
                try await keep(nil)
            }
        }
        let answers = try await sync.push(batch, device: device.device, as: .signIn, patience: patience)
        try? await register()
        return answers
    }

    /// Gets the device's token, if it has none: do this once after signing in, so that a later drain needs no sign-in.
    public func register() async throws {
        guard device.token == nil else { return }
        try await keep(try await sync.addDevice(device.device, name: deviceName))
    }

    /// Gives the device's token back, for signing out.
    public func unregister() async throws {
        guard device.token != nil else { return }
        try await sync.removeDevice(device.device)
        try await keep(nil)
    }

    private func keep(_ token: String?) async throws {
        device.token = token
        try await log.store(try AppJSON.encode(device), as: "device")
    }
}
