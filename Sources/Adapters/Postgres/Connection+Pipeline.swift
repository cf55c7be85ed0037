import CPostgres

extension Connection {
    /// More than the texts of this program: only calls that are made from a catalogue could be more, and they are sent plain then.
    private static let mostPrepared = 300

    /// - Parameter prepare: statements stay on the server under a name, so that it parses each only once a connection.
    /// - Parameter take: gets each result with the number of its statement. What it throws fails the whole, after the rest has been read.
    func performPipeline(
        _ statements: [Statement], deadline: Duration, prepare: Bool = false, honoursCancel: Bool = true,
        take: (Int, OpaquePointer) throws(PostgresError) -> Void = { _, _ throws(PostgresError) in }
    ) throws(PostgresError) {
        let handle = try live()
        guard PQenterPipelineMode(handle.pointer) == 1 else { throw broken(handle) }
        var turns = PipelineTurns()
        defer { for text in turns.unconfirmed { prepared[text] = nil } }
        for (number, statement) in statements.enumerated() {
            if prepare, prepared[statement.sql.text] == nil, prepared.count < Self.mostPrepared {
                let name = nextStatementName()
                let types = statement.parameters.map(\.type)
                guard PQsendPrepare(handle.pointer, name, statement.sql.text, Int32(types.count), types) == 1 else {
                    throw broken(handle)
                }
                prepared[statement.sql.text] = name
                turns.prepares(statement.sql.text)
            }
            try send(statement, on: handle, prepare: prepare)
            turns.runs(number)
        }
        guard PQpipelineSync(handle.pointer) == 1 else { throw broken(handle) }
        var reader = AnswerReader(
            handle: handle, deadline: deadline, interrupt: honoursCancel ? interrupt : nil,
            most: mostAnswerBytes)
        var failure: PostgresError?
        var synced = false
        while !synced {
            guard let result = try reader.next() else {
                if reader.gaveUp { break }
                turns.next()  // the end of one statement's answers
                continue
            }
            defer { PQclear(result) }
            do throws(PostgresError) {
                turns.note(isDone: PQresultStatus(result) == PGRES_COMMAND_OK)
                if failure == nil, let number = turns.number { try take(number, result) }
            } catch {
                failure = failure ?? error
            }
            switch PQresultStatus(result) {
            case PGRES_PIPELINE_SYNC: synced = true
            case PGRES_PIPELINE_ABORTED, PGRES_TUPLES_OK, PGRES_COMMAND_OK: break
            default: failure = failure ?? .server(Self.serverError(result))
            }
        }
        if let reason = reader.stopped, reader.gaveUp { throw reader.verdict(reason, failure: failure) }
        guard PQexitPipelineMode(handle.pointer) == 1 else { throw broken(handle) }
        if let reason = reader.stopped { throw reader.verdict(reason, failure: failure) }
        if let failure { throw failure }
    }
}

/// Whose turn it is among the answers of a pipeline: a statement's, or the naming of one.
private struct PipelineTurns {
    private enum Turn {
        case prepares(String)
        case runs(Int)
    }

    private var turns: [Turn] = []
    private var place = 0
    /// Statements whose names the server has not confirmed.
    private(set) var unconfirmed: Set<String> = []

    mutating func prepares(_ text: String) {
        turns.append(.prepares(text))
        unconfirmed.insert(text)
    }

    mutating func runs(_ number: Int) { turns.append(.runs(number)) }

    mutating func next() { place += 1 }

    mutating func note(isDone: Bool) {
        guard isDone, turns.indices.contains(place), case .prepares(let text) = turns[place] else { return }
        unconfirmed.remove(text)
    }

    /// Of the statement that answers now. A statement that cannot be named has failed; behind the last it is the end of all.
    var number: Int? {
        guard turns.indices.contains(place) else { return turns.count }
        switch turns[place] {
        case .runs(let number): return number
        case .prepares:
            guard turns.indices.contains(place + 1), case .runs(let number) = turns[place + 1] else { return nil }
            return number
        }
    }
}
