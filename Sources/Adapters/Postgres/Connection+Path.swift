import CPostgres

/// Where our statements look for functions, operators and types: in the system's schema alone. On a login's default path also stands a
/// schema in which others may create. A function there whose parameters have the exact types of a call is taken before a system function
/// of any type, and would run with our rights.
///
/// A direct connection sets the path for its session. Through a pooler that would change the session of other clients, so each
/// transaction sets it for itself, in the same round trip as its first statement.
enum CatalogPath {
    /// The first statement on each connection. Every name in it is written in full, because the path is not set yet.
    static let look = Statement(
        "select pg_catalog.pg_backend_pid(), pg_catalog.current_setting('default_transaction_isolation')")
    static let ofSession = Statement(
        """
        select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false),
               pg_catalog.set_config('default_transaction_isolation', 'read committed', false), pg_catalog.set_config('jit', 'off', false)
        """)
    /// First in a transaction that no `begin` has begun: there `set local` has no effect.
    static let ofStatement = Statement("select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)")
    /// Behind a `begin`. It takes no snapshot, so that the isolation level may still be chosen.
    static let ofTransaction = Statement("set local search_path = pg_catalog, pg_temp")

    static let begin = Statement("begin isolation level read committed")

    /// The script as one transaction with the path.
    static func ahead(of script: String) -> String {
        guard SQL(text: script).beginsTransaction else { return "\(ofStatement.sql.text); \(script)" }
        let end = script.firstIndex(of: ";") ?? script.endIndex
        return "\(script[..<end]); \(ofTransaction.sql.text)\(script[end...])"
    }
}

extension SQL {
    /// What follows stands in a transaction until it is ended.
    var beginsTransaction: Bool {
        let head = text.drop(while: \.isWhitespace).prefix(17).lowercased()
        return head.hasPrefix("begin") || head == "start transaction"
    }
}

/// What goes to the server in place of a caller's statements.
struct FramedStatements {
    let statements: [Statement]
    /// The place of the caller's first statement.
    let first: Int
    /// How many are the caller's.
    let count: Int
    /// It begins and ends a transaction, which is still open when it has failed.
    let isTransaction: Bool

    /// As they are.
    init(bare statements: [Statement]) {
        self.statements = statements
        first = 0
        count = statements.count
        isTransaction = false
    }

    /// Through a pooler, outside a transaction.
    /// - Parameter setsIsolation: the server's default is another level, and a setting of ours would affect other clients.
    init(pooled statements: [Statement], setsIsolation: Bool) {
        count = statements.count
        if statements.count == 1, statements[0].sql.beginsTransaction {
            self.statements = statements + [CatalogPath.ofTransaction]
            first = 0
            isTransaction = false
        } else if setsIsolation {
            self.statements = [CatalogPath.begin, CatalogPath.ofTransaction] + statements + [Statement("commit")]
            first = 2
            isTransaction = true
        } else {
            self.statements = [CatalogPath.ofStatement] + statements
            first = 1
            isTransaction = false
        }
    }
}

extension Connection {
    /// Nothing on the server says our path now.
    var needsFrame: Bool {
        guard isPooled, let handle else { return false }
        return isIdle(handle)
    }

    func frame(_ statements: [Statement]) -> FramedStatements {
        needsFrame
            ? FramedStatements(pooled: statements, setsIsolation: setsIsolation) : FramedStatements(bare: statements)
    }

    /// A script's text with what sets the path.
    func framed(_ script: SQL) -> String {
        needsFrame ? CatalogPath.ahead(of: script.text) : script.text
    }

    /// One statement through a pooler, in one round trip with what belongs around it.
    func performFramed<Element>(
        _ statement: Statement, prepare: Bool, deadline: Duration, honoursCancel: Bool, decode: Decode<Element>
    ) throws(PostgresError) -> Answer<Element> {
        let frame = frame([statement])
        var answer = Answer<Element>(rows: [], affected: 0)
        do {
            try performPipeline(
                frame.statements, deadline: deadline, prepare: prepare && !frame.isTransaction,
                honoursCancel: honoursCancel
            ) { (index, result) throws(PostgresError) in
                if index == frame.first { try take(result, into: &answer, decode: decode) }
            }
            return answer
        } catch {
            if frame.isTransaction { rollback() }
            throw error
        }
    }
}
