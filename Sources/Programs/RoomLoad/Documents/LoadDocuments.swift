import Blobs
package import CommandKit
import Composition
import Documents
import LoadKit
import Pages
import Postgres

extension Command {
    package static let loadDocuments = scenario(
        "documents",
        summary: "Measure how soon a scan's first page can be read, and what tenants wait beside each other",
        discussion: """
            In a database of its own, with one worker process and the programs beside this one. first submits a scan \
            of many pages and waits for the text of one page, then for all. resume kills the worker in the middle \
            and checks which pages run again. tenants uploads born-digital documents and one-page scans within a \
            minute, nine of ten from one tenant and the rest from another; the second tenant has done the same alone \
            before. flat is not part of all: it reads near-empty pages (10,000, or --pages), then dense ones (three \
            for each hundred of the others), and measures how the memory of the worker and of its children grows.
            """,
        flags: [
            .single(
                "part", "NAME", .choice(["all", "first", "resume", "tenants", "flat"]), environment: .none,
                fallback: "all",
                help: "Which part to run."),
            .count(
                "pages", 4...100_000,
                "Pages of the scan, at most 500; 50 if not given. With flat: near-empty pages; 10,000 if not given."),
            .count("documents", 10...10_000, 1000, "Documents of the tenants; a tenth of them are scans."),
            .single(
                "within", "DURATION", .duration(.seconds(1) ... .seconds(3600)), environment: .none, fallback: "60s",
                help: "The time in which they are uploaded."),
        ],
        examples: [
            Example("millrace load documents --part first", "a scan of fifty pages"),
            Example("millrace load documents --part tenants --documents 100 --within 6s", "a tenth of it"),
            Example("millrace load documents --part flat --pages 1000", "a tenth of the pages"),
        ]
    ) { invocation in
        let missing = invocation.workshop.missing
        guard missing.isEmpty else {
            throw Failure(
                "missing are \(missing.joined(separator: ", "))", hint: "build the programs, install the models")
        }
        do {
            return try await DocumentScenario(invocation: invocation).run()
        } catch let error as DocumentFailure {
            throw Failure(error.description)
        }
    }
}

struct DocumentScenario: Sendable {
    let invocation: Invocation

    private var part: String { invocation.parsed.string("part") ?? "all" }
    private var pages: Int { min(500, invocation.parsed.integer("pages") ?? 50) }
    private var documents: Int { invocation.count("documents") }

    func run() async throws -> ExitCode {
        let connection = try await invocation.connect()
        try await SchemaCheck.check(on: connection)
        guard try await number("select count(*) from (select from millrace.document limit 1) d", on: connection) == 0
        else {
            throw Failure(.conflict, "there are documents in this database", hint: "use a database of its own")
        }
        let pool = Pool(try invocation.connectionOptions(), size: 4)
        let store = invocation.settings.blobStore(pool: pool)
        var bars: [Bar] = []
        var figures: [(String, JSONValue)] = []
        if part == "flat" {
            try await flat(store, connection, &bars, &figures)
        } else if part != "tenants" {
            try await scan(store, connection, &bars, &figures)
        }
        if part == "all" || part == "tenants" { try await tenants(store, connection, &bars, &figures) }
        await pool.close()
        await connection.close()
        return invocation.report("documents", bars, figures: figures)
    }

    func number(_ sql: SQL, _ parameters: [Parameter] = [], on connection: Connection) async throws -> Double {
        Double(try await connection.int(sql, parameters, deadline: .seconds(60)))
    }

    func submit(
        _ bytes: [UInt8], tenant: String, _ store: any BlobStore, _ connection: Connection
    ) async throws -> String {
        let blob = try await store.put(bytes)
        let request: JSONValue = [
            "storage_url": .string("blob:\(blob)"), "tenant": .string(tenant), "options": ["outputs": ["pdf"]],
        ]
        return try await DocumentAdmin.register(Array(request.compact.utf8), on: connection)
    }

    private func wait(for id: String, done: Int, _ connection: Connection) async throws -> Duration {
        let began = ContinuousClock.now
        while true {
            guard let found = try await DocumentAdmin.find(id, on: connection) else { throw Failure("it is gone") }
            if found.done >= done || found.hasEnded { return .now - began }
            guard ContinuousClock.now - began < .seconds(3600) else { throw Failure("it is not read after an hour") }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private func scan(
        _ store: any BlobStore, _ connection: Connection, _ bars: inout [Bar], _ figures: inout [(String, JSONValue)]
    ) async throws {
        invocation.console.note("setting and drawing \(pages) pages")
        let file = try ScanMaker.pdf(try await ScanMaker(workshop: invocation.workshop).pages(pages))
        var workers = try await LoadWorkers.start(1, invocation, on: connection)
        let id = try await submit(file, tenant: "scans", store, connection)
        let first = try await wait(for: id, done: 1, connection)
        bars.append(.atMost("text of the first page readable", 3, measured: first / .seconds(1), unit: "s"))
        if part != "first" {
            _ = try await wait(for: id, done: pages / 3, connection)
            workers.kill()
            let before = try await finished(id, connection)
            invocation.console.note("the worker was killed with \(before.count) pages read")
            workers = try await LoadWorkers.start(1, invocation, on: connection)
            _ = try await wait(for: id, done: pages, connection)
            let after = try await finished(id, connection)
            let again = before.filter { !after.contains($0) }.count
            bars.append(.atMost("pages read again that had been read", 0, measured: Double(again), unit: "pages"))
        }
        let rest = try await wait(for: id, done: pages, connection)
        while try await DocumentAdmin.find(id, on: connection)?.hasEnded == false {
            try await Task.sleep(for: .milliseconds(20))
        }
        figures.append(("pages", .int(pages)))
        figures.append(("first_page_seconds", .double(first / .seconds(1))))
        if part == "first" {
            let took = first + rest
            let cpu = try await number("select cpu_ms from millrace.document", on: connection) / 1000
            let cores = Double(min(2, DocumentWiring.cores))
            figures.append(("seconds", .double(took / .seconds(1))))
            figures.append(("cpu_seconds_per_page", .double(cpu / Double(pages))))
            bars.append(
                .atLeast(
                    "of \(Int(cores)) cores kept busy", 90, measured: cpu / (took / .seconds(1)) / cores * 100,
                    unit: "%"))
        }
        try await workers.stop()
    }

    /// Pages with the time at which they were written down.
    private func finished(_ id: String, _ connection: Connection) async throws -> Set<String> {
        Set(
            try await DocumentAdmin.progress(id, since: nil, on: connection).filter { $0.status == "done" }
                .map { "\($0.page) \($0.at)" })
    }

    private func tenants(
        _ store: any BlobStore, _ connection: Connection, _ bars: inout [Bar], _ figures: inout [(String, JSONValue)]
    ) async throws {
        let scans = try await ScanMaker(workshop: invocation.workshop).pages(max(1, documents / 10), seed: 9)
        let workers = try await LoadWorkers.start(1, invocation, on: connection)
        try await upload(scans, share: 10, "alone", nil, store, connection)
        try await upload(scans, share: 10, "small", "large", store, connection)
        try await workers.stop()
        let alone = try await waits("alone", connection)
        let small = try await waits("small", connection)
        let large = try await waits("large", connection)
        let plain = (small.plain + large.plain).sorted()
        bars.append(
            .atMost("born-digital documents, p95", 60, measured: percentile(plain, 0.95), unit: "s"))
        let (before, beside) = (percentile(alone.all, 0.5), percentile(small.all, 0.5))
        bars.append(
            .atMost(
                "the small tenant waits beside the large, to alone", 2, measured: beside / max(0.001, before), unit: "×"
            ))
        for (name, tenant) in [("small tenant alone", alone), ("small beside large", small), ("large", large)] {
            invocation.console.note(
                "\(name): born-digital p50 \(Humane.decimal(percentile(tenant.plain, 0.5), places: 2)) s, "
                    + "scans p50 \(Humane.decimal(percentile(tenant.scans, 0.5), places: 2)) s")
        }
        figures += [
            ("alone_p50", .double(before)), ("small_p50", .double(beside)),
            ("small_p95", .double(percentile(small.all, 0.95))), ("large_p95", .double(percentile(large.all, 0.95))),
            ("large_scans_p95", .double(percentile(large.scans, 0.95))),
            ("small_scans_p95", .double(percentile(small.scans, 0.95))),
        ]
    }

    /// Evenly over the time, nine by the large tenant for each of the small one, and a scan after nine that are none.
    private func upload(
        _ scans: [Raster], share: Int, _ small: String, _ large: String?, _ store: any BlobStore,
        _ connection: Connection
    ) async throws {
        let within = invocation.parsed.duration("within") ?? .seconds(60)
        let began = ContinuousClock.now
        for number in 0..<documents {
            let isSmall = number % 10 == 4 || (number % 100 == 99)
            guard isSmall || large != nil else { continue }
            let due = began + within * number / documents
            if due > .now { try await Task.sleep(until: due) }
            let bytes =
                number % 10 == 9
                ? try ScanMaker.pdf([scans[number / 10 % scans.count]]) : ScanMaker.plain(number)
            _ = try await submit(bytes, tenant: isSmall ? small : large ?? small, store, connection)
        }
        invocation.console.note("uploaded after \(Humane.duration(.now - began))")
        while try await number("select count(*) from millrace.document where status = 'processing'", on: connection) > 0
        {
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    private func waits(
        _ tenant: String, _ connection: Connection
    ) async throws -> (all: [Double], plain: [Double], scans: [Double]) {
        let rows = try await connection.query(
            """
            select extract(epoch from finished_at - created_at)::float8, exists (select from millrace.document_page p where p.document = d.id and p.job is not null)
              from millrace.document d where tenant = $1
            """, [.text(tenant)]
        ) { row throws(PostgresError) in (wait: try row.double(0), isScan: try row.bool(1)) }
        return (
            rows.map(\.wait).sorted(), rows.filter { !$0.isScan }.map(\.wait).sorted(),
            rows.filter(\.isScan).map(\.wait).sorted()
        )
    }
}
