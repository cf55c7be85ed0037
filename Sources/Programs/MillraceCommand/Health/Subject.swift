/// What doctor checks of the core; rooms bring checks of their own. deploy/guides/operating.md has a heading for each.
enum Subject: String, Sendable, CaseIterable {
    case connection
    case serverVersion = "server version"
    case pooler
    case timeZones = "time zones"
    case schema
    case notifications
    case server
    case roles
    case rights
    case schemaOwner = "schema owner"
    case schemaContents = "schema contents"
    case searchPaths = "search paths"
    case functionsOfOthers = "functions of others"
    case rightsOfOthers = "rights of others"
    case claims = "claims of people"
    case openTransactions = "open transactions"
    case oldVersions = "old row versions"
    case subtransactions
    case locks
    case catalogue
    case identifiers = "numbers of transactions"
    case disk
    case origin
    case partitions
    case deadRows = "dead rows"
    case limits
    case encryptionKeys = "encryption keys"
    case providers
    case checkIns = "check-ins"
    case rooms
    case approvals
    case gatewayKeys = "gateway keys"
    case gatewayClock = "gateway clock"
    case gatewayRole = "gateway role"
    case encryption
    case clock
    case workers
    case workerClocks = "clocks of workers"
    case notificationQueue = "notification queue"
    case preparedTransactions = "prepared transactions"
    case replicationSlots = "replication slots"
    case replication
    case unloggedTables = "unlogged tables"
    case settings
    case transactionReadOnly = "transaction_read_only"
    case fsync
    case fullPageWrites = "full_page_writes"
    case synchronousCommit = "synchronous_commit"
    case autovacuum
    case trackCounts = "track_counts"
    case maxConnections = "max_connections"
    case defaultTransactionIsolation = "default_transaction_isolation"
    case idleInTransactionSessionTimeout = "idle_in_transaction_session_timeout"
}

extension Check {
    init(subject: Subject, result: Result) { self.init(subject.rawValue, result: result) }
}

extension Check.Result {
    var severity: Severity {
        switch self {
        case .ok: .ok
        case .warning: .degraded
        case .problem: .critical
        }
    }
}
