#if PostgresNIO
    public import Logging
    public import Millrace
    public import PostgresNIO

    extension Job {
        /// Enqueues this job on a connection of PostgresNIO, in the transaction that is open there: if that is rolled back, there is no
        /// job. Returns the job's number; where a unique key is held, the holder's.
        ///
        /// ```swift
        /// try await postgres.withTransaction(logger: logger) { connection in
        ///     try await connection.query("insert into orders (id) values (\(7))", logger: logger)
        ///     try await SendReceipt(order: 7).enqueue(on: connection, options: .init(uniqueKey: "receipt-7"), logger: logger)
        /// }
        /// ```
        /// - Parameters:
        ///   - connection: Its login needs the right to enqueue: see `grant_enqueue`.
        ///   - options: When, where and how often it runs.
        ///   - keys: Encrypt the arguments of a kind that asks for it.
        ///   - logger: PostgresNIO's, for the query.
        @discardableResult
        public func enqueue(
            on connection: PostgresConnection, options: EnqueueOptions = EnqueueOptions(),
            keys: EncryptionKeys = .environment, logger: Logger
        ) async throws -> Int64 {
            try await enqueueStatement(options: options, keys: keys).number(on: connection, logger: logger)
        }
    }

    extension SQLStatement {
        /// The statement for PostgresNIO. Each parameter is bound as text, which the statement casts.
        public var postgresQuery: PostgresQuery {
            var bindings = PostgresBindings(capacity: parameters.count)
            for parameter in parameters {
                if let text = parameter.text {
                    bindings.append(text)
                } else {
                    bindings.appendNull()
                }
            }
            return PostgresQuery(unsafeSQL: text, binds: bindings)
        }

        fileprivate func number(on connection: PostgresConnection, logger: Logger) async throws -> Int64 {
            for try await number in try await connection.query(postgresQuery, logger: logger).decode(Int64.self) {
                return number
            }
            throw QueueError(.refused, "The database gave no number for the job.")
        }
    }
#endif
