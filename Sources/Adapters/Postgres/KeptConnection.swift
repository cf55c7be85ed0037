import Synchronization

/// A connection that its owner keeps from use to use: opened when needed, dropped when broken. Where the process has few connections, each use
/// borrows one of them instead, and none is kept.
package final class KeptConnection: Sendable {
    private let options: ConnectionOptions
    private let name: String
    private let kept = Mutex<Connection?>(nil)

    /// - Parameters:
    ///   - options: with the urgency of what is done on it.
    ///   - name: of the connection's thread.
    package init(_ options: ConnectionOptions, name: String) {
        self.options = options
        self.name = name
    }

    package func use<Value: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ body: (Connection) async throws(PostgresError) -> Value
    ) async throws(PostgresError) -> Value {
        if let budget = options.budget { return try await budget.lend(options, body) }
        let connection = try await open()
        do {
            return try await body(connection)
        } catch {
            if await connection.isBroken || (error.isOutage && !error.isShortage) { await drop(connection) }
            throw error
        }
    }

    private func open() async throws(PostgresError) -> Connection {
        if let connection = kept.withLock({ $0 }), await !connection.isBroken { return connection }
        let opened = try await Connection.open(options, name: name)
        // Somebody else may have opened one meanwhile. Who uses that one goes on with it.
        let replaced = kept.withLock { kept in
            defer { kept = opened }
            return kept
        }
        if let replaced, await replaced.isBroken { await replaced.close() }
        return opened
    }

    private func drop(_ connection: Connection) async {
        kept.withLock { kept in
            if kept === connection { kept = nil }
        }
        await connection.close()
    }

    /// The next use opens another.
    package func close() async {
        let connection = kept.withLock { kept in
            defer { kept = nil }
            return kept
        }
        await connection?.close()
    }
}
