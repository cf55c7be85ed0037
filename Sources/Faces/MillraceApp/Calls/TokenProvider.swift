/// Gives the tokens of the app's sign-in, such as Supabase's or Firebase's.
public protocol TokenProvider: Sendable {
    /// A token that is good now. `rejected` is the one that the gateway refused, or nil: after a refusal another one is wanted. Calls never
    /// overlap: all who wait for a token share one call. Without a sign-in it throws.
    func token(rejected: String?) async throws -> String
}

/// A closure as a `TokenProvider`.
public struct TokenClosure: TokenProvider {
    private let body: @Sendable (String?) async throws -> String

    /// `rejected` is the token that the gateway refused, or nil.
    public init(_ body: @escaping @Sendable (_ rejected: String?) async throws -> String) { self.body = body }

    /// The closure's token.
    public func token(rejected: String?) async throws -> String { try await body(rejected) }
}

/// The token that is in use, and the one refresh that all wait for.
actor TokenKeeper {
    private let provider: any TokenProvider
    private var current: String?
    private var refresh: Task<String, any Error>?

    init(_ provider: any TokenProvider) { self.provider = provider }

    func token() async throws -> String {
        if let current { return current }
        return try await refreshed(nil)
    }

    /// Another token than this one. Where another caller has one already, that.
    func token(insteadOf rejected: String) async throws -> String {
        if let current, current != rejected { return current }
        current = nil
        return try await refreshed(rejected)
    }

    private func refreshed(_ rejected: String?) async throws -> String {
        if let refresh { return try await refresh.value }
        // A task of its own: who stopped waiting must not stop the refresh for the others.
        let task = Task {
            defer { self.refresh = nil }
            do {
                let token = try await provider.token(rejected: rejected)
                current = token
                return token
            } catch {
                throw Self.told(error)
            }
        }
        refresh = task
        return try await task.value
    }

    /// A refresh without a network is not the end of a sign-in.
    private static func told(_ error: any Error) -> any Error {
        let mapped = AppError.from(error)
        guard let known = mapped as? AppError, !(error is AppError), known.errorClass == .unknown else { return mapped }
        return AppError(.authentication, "the app's token provider gave no token: \(error)")
    }
}
