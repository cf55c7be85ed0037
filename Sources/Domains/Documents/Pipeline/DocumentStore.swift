import Blobs
import FoundationEssentials
import MillraceJobs
import Pages
package import Postgres

/// The document service's SQL: one method for each door.
package struct DocumentStore: Sendable {
    let pool: Pool

    package init(pool: Pool) {
        self.pool = pool
    }

    /// What a run needs to know about its document.
    struct Taken: Sendable {
        var title: String?
        var source: String?
        var blob: BlobID?
        var size: Int?
        var inspection: [UInt8]?
        var languages: [String]
        var policy: String
        var dpi: Int
        var outputs: [String]
        var tenant: String?
        var pages: Int
        var done: Int
        var failed: Int
        var isSigned: Bool
        var isEncrypted: Bool
        var password: String?
        var tries: Int
        var cpu: Duration
        /// The CPU seconds that its tenant has left; nil: no limit.
        var cpuLeft: Double?
        var choicesJSON: [UInt8]?
        /// Of a page, why its last run is repeated.
        var trouble: Reason?
        /// Of a page, that it must wait for others, because the tenant's CPU time may not suffice for all.
        var waits = false

        /// For a page, with its own mode.
        func choices() throws -> DocumentChoices {
            try choicesJSON.map { try JSONDecoder().decode(DocumentChoices.self, from: Data($0)) } ?? DocumentChoices()
        }
    }

    /// nil: there is nothing left to do.
    func take(_ job: DocumentJob) async throws -> Taken? {
        try await ask(
            """
            select title, source, encode(blob, 'hex'), size, inspection, languages, policy, dpi, outputs, tenant, coalesce(pages, 0), pages_done, pages_failed,
                   signed, encrypted, password, tries, cpu_ms, cpu_left, choices, trouble, waits
              from millrace.document_take($1, $2::text::uuid, $3, $4)
            """, job.named + [.int4(job.page)]
        ) { row throws(PostgresError) in
            Taken(
                title: row.optionalString(0), source: row.optionalString(1),
                blob: row.optionalString(2).flatMap { BlobID($0) },
                size: try row.optionalInt(3).map { Int($0) }, inspection: row.optionalJSON(4),
                languages: try row.strings(5), policy: try row.string(6), dpi: Int(try row.int(7)),
                outputs: try row.strings(8), tenant: row.optionalString(9), pages: Int(try row.int(10)),
                done: Int(try row.int(11)), failed: Int(try row.int(12)), isSigned: try row.bool(13),
                isEncrypted: try row.bool(14), password: row.optionalString(15), tries: Int(try row.int(16)),
                cpu: .milliseconds(try row.int(17)), cpuLeft: row.optionalDouble(18),
                choicesJSON: row.optionalJSON(19), trouble: row.optionalString(20).flatMap(Reason.init),
                waits: try row.bool(21))
        }.first
    }

    func stage(_ job: DocumentJob, _ stage: String) async throws -> Bool {
        try await truth("select millrace.document_stage($1, $2::text::uuid, $3, $4)", job.named + [.text(stage)])
    }

    enum Reception: String, Sendable {
        case taken, over, quota
        /// Its size is not the announced one.
        case malformed
    }

    func received(_ job: DocumentJob, _ blob: BlobID, size: Int) async throws -> Reception {
        try await reception(
            "select millrace.document_received($1, $2::text::uuid, $3, $4, $5)",
            job.named + [.bytea(blob.bytes), .int8(Int64(size))])
    }

    func inspected(
        _ job: DocumentJob, _ inspection: Inspection, json: [UInt8], refused: [UInt8], cpu: Duration
    ) async throws -> Reception {
        try await reception(
            "select millrace.document_inspected($1, $2::text::uuid, $3, $4, $5, $6, $7, $8, $9, $10)",
            job.named + [
                .json(json), .text(inspection.kind.mimeType), .int4(Int32(clamping: inspection.pages.count)),
                .bool(inspection.isSigned), .bool(inspection.isEncrypted), .json(refused), .int4(cpu.wholeMilliseconds),
            ])
    }

    /// The pages that are still to be read.
    func waiting(_ job: DocumentJob) async throws -> [Int] {
        try await ask("select millrace.document_waiting($1::text::uuid)", [.text(job.document)]) {
            row throws(PostgresError) in try row.ints(0).map { Int($0) }
        }.first ?? []
    }

    func cached(_ key: [UInt8], tenant: String?) async throws -> [UInt8]? {
        try await ask("select millrace.document_cached($1, $2)", [.text(tenant), .bytea(key)]) {
            row throws(PostgresError) in row.optionalJSON(0)
        }.first ?? nil
    }

    /// False: the document is no longer being worked on, or another run has it.
    ///
    /// - Parameter ends: the run is a page's run, and ends with this call.
    func put(_ job: DocumentJob, _ results: [PageResult], cpu: Duration, ends: Bool) async throws -> Bool {
        try await truth(
            "select millrace.document_pages_put($1, $2::text::uuid, $3, $4, $5, $6)",
            job.named + [.json(try PageResult.json(results)), .int4(cpu.wholeMilliseconds), .bool(ends)])
    }

    /// Enqueues a job for each page that is left, and ends the run.
    func spread(_ job: DocumentJob) async throws -> Bool {
        try await truth("select millrace.document_spread($1, $2::text::uuid, $3)", job.named)
    }

    struct Content: Sendable {
        var page: Int
        var text: String
        var content: [UInt8]
    }

    func contents(_ document: String, from first: Int, most: Int, onlyRead: Bool) async throws -> [Content] {
        try await ask(
            "select page, text, content from millrace.document_contents($1::text::uuid, $2, $3, $4)",
            [.text(document), .int4(Int32(clamping: first)), .int4(Int32(clamping: most)), .bool(onlyRead)]
        ) { row throws(PostgresError) in
            Content(page: Int(try row.int(0)), text: try row.string(1), content: try row.json(2))
        }
    }

    /// The texts of the codes of each page that has some.
    func codes(_ document: String) async throws -> [(page: Int, texts: [String])] {
        try await ask("select page, texts from millrace.document_codes($1::text::uuid)", [.text(document)]) {
            row throws(PostgresError) in (page: Int(try row.int(0)), texts: try row.strings(1))
        }
    }

    /// A document that is a part of another.
    struct Part: Sendable {
        var pages: ClosedRange<Int>
        var title: String
        /// nil: only asks whether it is there.
        var content: (blob: BlobID, size: Int, inspection: [UInt8])?
    }

    enum PartState: String, Sendable {
        case missing, there
        /// The whole document is no longer being worked on.
        case over
    }

    func part(_ job: DocumentJob, _ part: Part) async throws -> PartState {
        try await ask(
            "select millrace.document_part($1, $2::text::uuid, $3, $4, $5, $6, $7, $8, $9)",
            job.named + [
                .int4(Int32(clamping: part.pages.lowerBound)), .int4(Int32(clamping: part.pages.upperBound)),
                .text(part.title), .bytea(part.content.map { Array($0.blob.bytes) }),
                .int8(part.content.map { Int64($0.size) }), .json(part.content?.inspection),
            ]
        ) { row throws(PostgresError) in
            guard let state = PartState(rawValue: try row.string(0)) else {
                throw .undecodable(column: 0, expected: "a part's state")
            }
            return state
        }.first ?? .over
    }

    /// Ends the document and the run. A failure of a completed document says which output could not be made.
    func end(
        _ job: DocumentJob, _ failure: DocumentFailure?, isFailed: Bool, outputs: [UInt8], cpu: Duration
    ) async throws -> Bool {
        try await truth(
            "select millrace.document_ended($1, $2::text::uuid, $3, $4, $5, $6, $7, $8)",
            job.named + [
                .text(isFailed ? "failed" : "completed"), .text(failure?.reason.rawValue), .text(failure?.sentence),
                .json(outputs), .int4(cpu.wholeMilliseconds),
            ])
    }

    /// Ends documents whose jobs are gone; returns how many.
    func check() async throws -> Int {
        try await ask("select millrace.documents_check()", []) { row throws(PostgresError) in Int(try row.int(0)) }
            .first ?? 0
    }

    private func reception(_ sql: SQL, _ parameters: [Parameter]) async throws -> Reception {
        try await ask(sql, parameters) { row throws(PostgresError) in
            guard let answer = Reception(rawValue: try row.string(0)) else {
                throw .undecodable(column: 0, expected: "an answer")
            }
            return answer
        }.first ?? .over
    }

    private func truth(_ sql: SQL, _ parameters: [Parameter]) async throws -> Bool {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.truth(sql, parameters, deadline: .seconds(60))
        }
    }

    private func ask<Element: Sendable>(
        _ sql: SQL, _ parameters: [Parameter], _ decode: @escaping Connection.Decode<Element>
    ) async throws -> [Element] {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(sql, parameters, deadline: .seconds(60), decode: decode)
        }
    }
}

extension DocumentJob {
    fileprivate var named: [Parameter] { [.text(context.token), .text(document), .int4(round)] }
}

extension Duration {
    var wholeMilliseconds: Int32 { Int32(clamping: Int64((self / .milliseconds(1)).rounded(.up))) }
}

extension FileFormat {
    var mimeType: String { self == .pdf ? "application/pdf" : "image/\(rawValue)" }
}
