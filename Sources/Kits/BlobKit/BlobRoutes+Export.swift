import Blobs
import JSON
import Listeners
import Postgres

extension BlobRoutes {
    /// All that is kept of a person, by a link of `millrace.person_export_link`: a line of JSON for each row, and each file with a link that ends
    /// when this one does.
    func export(_ request: Listeners.Request) async throws -> Listeners.Response {
        let wanted: BlobLinks.Export
        switch links.openExport(request.parameter("token"), at: Self.now) {
        case .open(let export): wanted = export
        case .expired: return Self.refusal(410, "not_found", "this link has expired; ask for a new one")
        case .foreign: return Self.refusal(404, "not_found", "this link is not one of ours")
        }
        let (pool, links) = (store.pool.share(of: addresses.of(request)), links)
        @Sendable func page(_ after: String?) async throws -> [PersonExport.Row] {
            try await pool.withConnection { connection in
                try await PersonExport.page(of: wanted.person, after: after, on: connection)
            }
        }
        // Before the answer begins, so that what is wrong is an answer of its own.
        let first = try await page(nil)
        return Response(
            status: 200,
            headers: [
                Header("Content-Type", "application/jsonl; charset=utf-8"),
                Header("Cache-Control", "private, no-store"),
                Header("Content-Disposition", "attachment; filename=\"export.jsonl\""),
            ],
            body: .stream { writer in
                var rows = first
                while let last = rows.last {
                    for row in rows {
                        var json = row.json
                        let urls = row.files.compactMap { file in
                            links.download(
                                .init(id: file.blob, type: "application/octet-stream", name: file.name),
                                until: wanted.expiry
                            ).map { JSONValue.string($0) }
                        }
                        if case .object(let members) = json, !urls.isEmpty {
                            json = .object(members + [.init(key: "urls", value: .array(urls))])
                        }
                        try await writer.write(Array((json.compact + "\n").utf8))
                    }
                    rows = try await page(last.place)
                }
            })
    }
}
