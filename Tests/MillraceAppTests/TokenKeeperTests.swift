import Foundation
import TestSupport
import Testing

@testable import MillraceApp

@Suite struct TokenKeeperTests {
    @Test func `all who wait share one refresh, and one that stops waiting does not end it`() async throws {
        let asked = Locked(0)
        let gate = Gate()
        let keeper = TokenKeeper(
            TokenClosure { _ in
                asked.add()
                try await gate.pass()
                return "t\(asked.value)"
            })
        let waiters = (0..<20).map { _ in Task { try await keeper.token() } }
        try await eventually("the provider is asked") { asked.value == 1 }
        waiters[0].cancel()
        gate.open()
        for waiter in waiters { #expect(try await waiter.value == "t1") }
        #expect(try await keeper.token() == "t1")
        #expect(asked.value == 1)
    }

    @Test func `a refused token is replaced once, also when several callers were refused`() async throws {
        let rejected = Locked<[String?]>([])
        let keeper = TokenKeeper(
            TokenClosure { old in
                rejected.withLock {
                    $0.append(old)
                    return "t\($0.count)"
                }
            })
        #expect(try await keeper.token() == "t1")
        #expect(try await keeper.token(insteadOf: "t1") == "t2")
        // The second caller was refused with the same old token.
        #expect(try await keeper.token(insteadOf: "t1") == "t2")
        #expect(rejected.value == [nil, "t1"])
    }

    @Test func `a refresh that fails is told to all who wait, and tried again by the next`() async throws {
        struct NobodySignedIn: Error {}
        let asked = Locked(0)
        let keeper = TokenKeeper(
            TokenClosure { _ in
                if asked.add() == 1 { throw NobodySignedIn() }
                return "good"
            })
        let error = try await failure(as: AppError.self) { _ = try await keeper.token() }
        #expect(error?.kind == .unauthenticated)
        #expect(try await keeper.token() == "good")
    }

    @Test func `a refresh without a network is no sign-out`() async throws {
        let keeper = TokenKeeper(TokenClosure { _ in throw AppError(.unavailable, "no network") })
        let error = try await failure(as: AppError.self) { _ = try await keeper.token() }
        #expect(error?.kind == .unavailable)
    }
}
