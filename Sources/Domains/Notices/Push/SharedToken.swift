import Encryption
import Faults
import FoundationEssentials
package import Postgres
import Signatures
package import Supervision
import Synchronization

/// Supplies a provider's token.
package protocol TokenSource: Sendable {
    /// - Parameter call: What it is needed for: all calls of a process read one token.
    func current(for call: Call) async throws -> String
    /// The provider does not take this one.
    func refuse(_ token: String)
}

/// A provider's token, which all workers share: a row that the holder of its lease renews, encrypted with a key made of the signing
/// key. Apple refuses a team whose tokens change too often, and every token after an hour.
package final class SharedToken: TokenSource {
    package struct Ages: Sendable {
        /// From this age on a worker makes a new token.
        package var fresh = Duration.seconds(45 * 60)
        /// Until this age the old token is used while a worker makes a new one.
        package var last = Duration.seconds(57 * 60)
        /// No new token is made sooner, whatever the provider says about this one.
        package var least = Duration.seconds(20 * 60)

        package init() {}
    }

    private struct Held {
        var token: String
        var made: ContinuousClock.Instant
    }

    private struct State {
        var held: Held?
        /// The provider refused our present token.
        var isRefused = false
    }

    private let name: String
    private let pool: Pool
    private let ages: Ages
    private let keys: Keyring
    private let make: @Sendable (Int64) -> String
    private let holder = Int64.random(in: 1 ... .max)
    private let state = Mutex(State())

    /// - Parameters:
    ///   - secret: Known to every process that may make a token, and to nobody else.
    ///   - make: Makes a token that is dated with these seconds since 1970.
    package init(
        name: String, pool: Pool, secret: [UInt8], ages: Ages = Ages(), make: @escaping @Sendable (Int64) -> String
    ) throws {
        self.name = name
        self.pool = pool
        self.ages = ages
        self.make = make
        keys = try Keyring([Key(bytes: HMAC.sha256(Array("millrace provider token \(name)".utf8), key: secret))])
    }

    package func current(for call: Call) async throws -> String {
        if let token = state.withLock({ state in good(state, for: ages.fresh) }) { return token }
        return try await call.read("token:\(name)") { try await self.fetch() }
    }

    package func refuse(_ token: String) {
        state.withLock { state in
            if state.held?.token == token { state.isRefused = true }
        }
    }

    private func good(_ state: State, for age: Duration) -> String? {
        guard let held = state.held, !state.isRefused, held.made.duration(to: .now) < age else { return nil }
        return held.token
    }

    private struct Row: Sendable {
        var sealed: [UInt8]?
        var age: Double?
        var isMine: Bool
        var at: Double
    }

    private func fetch() async throws -> String {
        let isRefused = state.withLock { $0.isRefused }
        let fresh = isRefused ? ages.least : ages.fresh
        for _ in 0..<200 {
            let row: Row
            do {
                row = try await take(fresh)
            } catch {
                // Without the database our present token is used as long as it lasts.
                if let token = state.withLock({ state in good(state, for: ages.last) }) { return token }
                throw error
            }
            if row.isMine { return try await renew(at: row.at) }
            if let sealed = row.sealed, let age = row.age, age < ages.last.inSeconds,
                let bytes = try? keys.open(sealed, kind: name)  // encrypted with another signing key: not ours to read
            {
                let token = String(decoding: bytes, as: UTF8.self)
                state.withLock { state in
                    state.held = Held(token: token, made: .now - .seconds(age))
                    state.isRefused = false
                }
                return token
            }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw Fault(.unavailable, "another worker is making the token and has not returned it")
    }

    private func take(_ fresh: Duration) async throws -> Row {
        try await pool.withConnection { [name, holder] connection throws(PostgresError) in
            try await connection.query(
                "select sealed, age, is_mine, at from millrace.provider_token_take($1, $2, $3)",
                [.text(name), .int8(holder), .float8(fresh.inSeconds)]
            ) { row throws(PostgresError) in
                Row(
                    sealed: row.optionalJSON(0), age: row.optionalDouble(1), isMine: try row.bool(2),
                    at: try row.double(3))
            }.first ?? Row(isMine: false, at: 0)
        }
    }

    private func renew(at now: Double) async throws -> String {
        let token = make(Int64(now))
        let sealed = try keys.seal(Array(token.utf8), kind: name)
        let isKept = try await pool.withConnection { [name, holder] connection throws(PostgresError) in
            try await connection.truth(
                "select millrace.provider_token_put($1, $2, $3, $4)",
                [.text(name), .int8(holder), .json(sealed), .float8(now.rounded(.down))]
            )
        }
        guard isKept else { return try await fetch() }
        state.withLock { state in
            state.held = Held(token: token, made: .now)
            state.isRefused = false
        }
        return token
    }
}
