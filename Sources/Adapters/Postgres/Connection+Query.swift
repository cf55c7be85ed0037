import CPostgres
import Glibc
import Threads

/// A statement's result: its decoded rows, and how many rows it changed.
package struct Answer<Element: Sendable>: Sendable {
    package var rows: [Element]
    package var affected: Int
}

extension Connection {
    package typealias Decode<Element> = @Sendable (Row) throws(PostgresError) -> Element

    /// Runs one statement and decodes its rows on the connection's thread.
    package func query<Element: Sendable>(
        _ sql: SQL, _ parameters: [Parameter] = [], deadline: Duration? = nil, decode: Decode<Element>
    ) async throws(PostgresError) -> [Element] {
        try await cancellable { connection throws(PostgresError) in
            try connection.read(Statement(sql, parameters), deadline: deadline, decode: decode).rows
        }
    }

    /// The one value of a statement; false if there is no row.
    package func truth(
        _ sql: SQL, _ parameters: [Parameter] = [], deadline: Duration? = nil
    ) async throws(PostgresError) -> Bool {
        try await query(sql, parameters, deadline: deadline) { row throws(PostgresError) in try row.bool(0) }.first
            ?? false
    }

    /// Runs one statement for its effect; returns how many rows it touched.
    @discardableResult
    package func execute(
        _ sql: SQL, _ parameters: [Parameter] = [], deadline: Duration? = nil
    ) async throws(PostgresError) -> Int {
        try await cancellable { connection throws(PostgresError) in
            try connection.read(Statement(sql, parameters), deadline: deadline) { _ throws(PostgresError) in }.affected
        }
    }

    /// For statements that take no parameters: `%I` in the template becomes this name, quoted.
    package func execute(
        _ template: StaticString, naming name: String, deadline: Duration? = nil
    ) async throws(PostgresError) {
        let handle = try live()
        guard let quoted = PQescapeIdentifier(handle.pointer, name, name.utf8.count) else { throw broken(handle) }
        defer { PQfreemem(quoted) }
        try await execute(.quoted(template, names: [String(cString: quoted)]), deadline: deadline)
    }

    /// Sends all statements at once in one implicit transaction: one round trip, all or none.
    package func pipeline(_ statements: [Statement], deadline: Duration? = nil) async throws(PostgresError) {
        try await cancellable { connection throws(PostgresError) in
            let frame = connection.frame(statements)
            do throws(PostgresError) {
                try connection.performPipeline(
                    frame.statements, deadline: deadline ?? connection.options.statementDeadline)
            } catch {
                if frame.isTransaction { connection.rollback() }
                throw error
            }
        }
    }

    /// Sends all statements at once in one implicit transaction, as `pipeline` does, and decodes the rows of each.
    /// - Parameter decode: reads a row of the statement with this index.
    package func transaction<Element: Sendable>(
        of statements: [Statement], deadline: Duration? = nil,
        decode: @Sendable (Int, Row) throws(PostgresError) -> Element
    ) async throws(FailedStatement) -> [[Element]] {
        let outcome: Result<[[Element]], FailedStatement>
        do throws(PostgresError) {
            outcome = try await cancellable { connection throws(PostgresError) in
                do throws(FailedStatement) {
                    return .success(
                        try connection.performTransaction(of: statements, deadline: deadline, decode: decode))
                } catch {
                    return .failure(error)
                }
            }
        } catch {
            throw FailedStatement(index: 0, error: error)
        }
        return try outcome.get()
    }

    private func performTransaction<Element: Sendable>(
        of statements: [Statement], deadline: Duration?, decode: (Int, Row) throws(PostgresError) -> Element
    ) throws(FailedStatement) -> [[Element]] {
        let frame = frame(statements)
        do {
            return try attempt(frame, deadline: deadline, prepare: preparing && !frame.isTransaction, decode: decode)
        } catch {
            if frame.isTransaction { rollback() }
            // As in `read`: a pooler has given us another server's statements.
            guard options.prepare == .auto, preparing, ["26000", "42P05"].contains(error.error.sqlState),
                let handle, PQtransactionStatus(handle.pointer) == PQTRANS_IDLE
            else { throw error }
            preparing = false
            return try attempt(frame, deadline: deadline, prepare: false, decode: decode)
        }
    }

    /// Sends them once.
    private func attempt<Element: Sendable>(
        _ frame: FramedStatements, deadline: Duration?, prepare: Bool,
        decode: (Int, Row) throws(PostgresError) -> Element
    ) throws(FailedStatement) -> [[Element]] {
        var rows = [[Element]](repeating: [], count: frame.count)
        var failed: Int?
        do throws(PostgresError) {
            try performPipeline(frame.statements, deadline: deadline ?? options.statementDeadline, prepare: prepare) {
                (index, result) throws(PostgresError) in
                let place = index - frame.first
                switch PQresultStatus(result) {
                case PGRES_TUPLES_OK where rows.indices.contains(place):
                    for number in 0..<PQntuples(result) {
                        do throws(PostgresError) {
                            rows[place].append(try decode(place, Row(result: result, index: number)))
                        } catch {
                            failed = failed ?? place
                            throw error
                        }
                    }
                case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE: failed = failed ?? place
                default: break
                }
            }
            return rows
        } catch {
            throw FailedStatement(index: min(max(failed ?? 0, 0), frame.count), error: error)
        }
    }

    /// Runs a script of many statements, none of which take values. Through a pooler it is one transaction, unless the script ends it.
    package func run(script: SQL, deadline: Duration? = nil) async throws(PostgresError) {
        try await cancellable { connection throws(PostgresError) in
            let handle = try connection.live()
            guard PQsendQuery(handle.pointer, connection.framed(script)) == 1 else { throw connection.broken(handle) }
            _ = try connection.collect(handle, deadline: deadline ?? connection.options.statementDeadline) {
                _ throws(PostgresError) in
            }
        }
    }

    /// Begins a transaction, which `commit` or `rollback` ends.
    package func begin() async throws(PostgresError) {
        try await execute(CatalogPath.begin.sql)
    }

    /// Runs `body` inside a transaction: committed when it returns, rolled back when it throws or its value is not to be kept.
    package func transaction<Value: Sendable>(
        keeping keeps: @Sendable (Value) -> Bool = { _ in true },
        _ body: (Connection) async throws(PostgresError) -> Value
    ) async throws(PostgresError) -> Value {
        try await begin()
        do {
            let value = try await body(self)
            if keeps(value) { try await execute("commit") } else { rollback() }
            return value
        } catch {
            rollback()
            throw error
        }
    }

    /// Not interrupted by a cancelled task; a connection that cannot roll back is broken, and its pool drops it.
    func rollback() {
        _ = try? perform(Statement("rollback"), prepare: false, deadline: .seconds(5), honoursCancel: false) { _ in }
    }

    /// A cancelled task interrupts the wait; the wait then cancels the statement on the server.
    func cancellable<Value: Sendable>(
        _ body: (isolated Connection) throws(PostgresError) -> Value
    ) async throws(PostgresError) -> Value {
        if Task.isCancelled { throw .cancelled }
        _ = interrupt.take()
        let outcome: Result<Value, PostgresError> = await withTaskCancellationHandler {
            do throws(PostgresError) {
                return .success(try body(self))
            } catch {
                return .failure(error)
            }
        } onCancel: {
            interrupt.fire()
        }
        return try outcome.get()
    }

    private func read<Element>(
        _ statement: Statement, deadline: Duration?, decode: Decode<Element>
    ) throws(PostgresError) -> Answer<Element> {
        let deadline = deadline ?? options.statementDeadline
        do {
            return try perform(statement, prepare: preparing, deadline: deadline, decode: decode)
        } catch {
            // 26000 and 42P05: a pooler has given us another server's statements. Nothing ran; send it plain, and from now on.
            guard options.prepare == .auto, preparing, error.sqlState == "26000" || error.sqlState == "42P05",
                let handle, PQtransactionStatus(handle.pointer) == PQTRANS_IDLE
            else { throw error }
            preparing = false
            return try perform(statement, prepare: false, deadline: deadline, decode: decode)
        }
    }

    func live() throws(PostgresError) -> Handle {
        guard let handle else { throw .lost(reason: "it is closed") }
        if handle.isBad { throw .lost(reason: handle.complaint) }
        return handle
    }

    func broken(_ handle: Handle) -> PostgresError {
        .lost(reason: handle.complaint)
    }

    func perform<Element>(
        _ statement: Statement, prepare: Bool, deadline: Duration, honoursCancel: Bool = true, decode: Decode<Element>
    ) throws(PostgresError) -> Answer<Element> {
        let handle = try live()
        if needsFrame {
            return try performFramed(
                statement, prepare: prepare, deadline: deadline, honoursCancel: honoursCancel, decode: decode)
        }
        if prepare, prepared[statement.sql.text] == nil {
            let name = nextStatementName()
            let types = statement.parameters.map(\.type)
            guard PQsendPrepare(handle.pointer, name, statement.sql.text, Int32(types.count), types) == 1 else {
                throw broken(handle)
            }
            _ = try collect(handle, deadline: deadline) { _ throws(PostgresError) in }
            prepared[statement.sql.text] = name
        }
        try send(statement, on: handle, prepare: prepare)
        return try collect(handle, deadline: deadline, honoursCancel: honoursCancel, decode: decode)
    }

    func send(_ statement: Statement, on handle: Handle, prepare: Bool) throws(PostgresError) {
        let count = Int32(statement.parameters.count)
        let types = statement.parameters.map(\.type)
        let lengths = statement.parameters.map { Int32($0.bytes?.count ?? 0) }
        let formats = [Int32](repeating: 1, count: statement.parameters.count)
        // One buffer for all values: their addresses hold until libpq has copied them.
        var offsets: [Int?] = []
        var bytes: [UInt8] = []
        bytes.reserveCapacity(lengths.reduce(1) { $0 + Int($1) })
        for parameter in statement.parameters {
            offsets.append(parameter.bytes.map { _ in bytes.count })
            bytes.append(contentsOf: parameter.bytes ?? [])
        }
        bytes.append(0)
        let sent = bytes.withUnsafeBytes { buffer in
            let base = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
            let values = offsets.map { offset in offset.flatMap { base?.advanced(by: $0) } }
            if prepare, let name = prepared[statement.sql.text] {
                return PQsendQueryPrepared(handle.pointer, name, count, values, lengths, formats, 1)
            }
            return PQsendQueryParams(handle.pointer, statement.sql.text, count, types, values, lengths, formats, 1)
        }
        guard sent == 1 else { throw broken(handle) }
    }

    /// Sends the rest and reads the answers of one statement or script.
    func collect<Element>(
        _ handle: Handle, deadline: Duration, honoursCancel: Bool = true, decode: Decode<Element>
    ) throws(PostgresError) -> Answer<Element> {
        var reader = AnswerReader(
            handle: handle, deadline: deadline, interrupt: honoursCancel ? interrupt : nil,
            most: mostAnswerBytes)
        var answer = Answer<Element>(rows: [], affected: 0)
        var failure: PostgresError?
        while let result = try reader.next() {
            defer { PQclear(result) }
            do {
                try take(result, into: &answer, decode: decode)
            } catch {
                failure = failure ?? error
                if PQresultStatus(result) == PGRES_COPY_IN { break }
            }
        }
        if let reason = reader.stopped { throw reader.verdict(reason, failure: failure) }
        if let failure { throw handle.isBad ? .lost(reason: Self.sentence(failure)) : failure }
        return answer
    }

    private static func sentence(_ error: PostgresError) -> String {
        if case .server(let error) = error { error.message } else { error.description }
    }

    func take<Element>(
        _ result: OpaquePointer, into answer: inout Answer<Element>, decode: Decode<Element>
    ) throws(PostgresError) {
        switch PQresultStatus(result) {
        case PGRES_TUPLES_OK:
            let count = PQntuples(result)
            answer.rows.reserveCapacity(answer.rows.count + Int(count))
            for index in 0..<count {
                answer.rows.append(try decode(Row(result: result, index: index)))
            }
            answer.affected = Int(count)
        case PGRES_COMMAND_OK, PGRES_EMPTY_QUERY, PGRES_PIPELINE_SYNC, PGRES_COPY_IN:
            answer.affected = PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
        default:
            throw .server(Self.serverError(result))
        }
    }

    static func serverError(_ result: OpaquePointer) -> PostgresError.ServerError {
        func field(_ code: Character) -> String? {
            guard let ascii = code.asciiValue, let text = PQresultErrorField(result, Int32(ascii)) else { return nil }
            let value = String(cString: text)
            return value.isEmpty ? nil : value
        }
        return .init(
            sqlState: field("C") ?? "08006", message: field("M") ?? "no reason given", detail: field("D"),
            hint: field("H"),
            context: field("W"), constraint: field("n"))
    }
}
