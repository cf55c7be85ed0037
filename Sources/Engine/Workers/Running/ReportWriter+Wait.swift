import Encryption
import FoundationEssentials
import JSON
import MillraceJobs
import MillraceQueues
import Postgres
import Threads
import Traces

extension ReportWriter {
    /// Ends the run if what it waits for has not come. Asked again after a lost answer, the database says the same.
    func wait(_ context: Context, _ request: WaitRequest) async throws -> [UInt8]? {
        var options = request.options
        if !request.children.isEmpty {
            let metadata = context.place.map { String(decoding: $0.carried(in: nil), as: UTF8.self) }
            let jobs = try request.children.map { child in
                let args = child.encrypted ? try keys.seal(child.args, kind: child.kind) : child.args
                var members: [JSONValue.Member] = [
                    .init(key: "kind", value: .string(child.kind)),
                    .init(key: "args", value: .raw(String(decoding: args, as: UTF8.self))),
                ]
                if let queue = child.queue { members.append(.init(key: "queue", value: .string(queue))) }
                if child.version > 0 {
                    members.append(.init(key: "options", value: ["version": .int(child.version)]))
                }
                if let metadata { members.append(.init(key: "metadata", value: .raw(metadata))) }
                return JSONValue.object(members)
            }
            options = Array(JSONValue.object([.init(key: "jobs", value: .array(jobs))]).compact.utf8)
        }
        let asked = options
        let token = context.token
        do throws(PostgresError) {
            return try await uncancelled { () throws(PostgresError) in
                try await patiently(context) { connection throws(PostgresError) in
                    try await Queue.wait(request, options: asked, token: token, on: connection)
                }
            }
        } catch {
            let why = Self.explain(error, name: request.step, bytes: asked.count)
            if case .leaseLost = why { lose(context) }
            throw why
        }
    }
}
