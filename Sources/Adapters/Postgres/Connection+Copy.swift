import CPostgres
import Threads

extension Connection {
    /// Streams rows in COPY text form to the server. `next` gives chunks until it returns nil; when it throws, the COPY is called
    /// off and nothing of it stays.
    package func copyIn(
        _ sql: SQL, deadline: Duration? = nil, next: @Sendable () throws -> [UInt8]?
    ) async throws -> Int {
        let limit = deadline ?? options.statementDeadline
        let handle = try live()
        if Task.isCancelled { throw PostgresError.cancelled }
        guard PQsendQuery(handle.pointer, framed(sql)) == 1 else { throw broken(handle) }
        var reader = AnswerReader(handle: handle, deadline: limit, interrupt: nil)
        guard var opening = try reader.next() else { throw broken(handle) }
        if PQresultStatus(opening) == PGRES_TUPLES_OK {  // of what sets the path
            PQclear(opening)
            guard let next = try reader.next() else { throw broken(handle) }
            opening = next
        }
        let status = PQresultStatus(opening)
        let refusal = status == PGRES_COPY_IN ? nil : PostgresError.server(Self.serverError(opening))
        PQclear(opening)
        if let refusal {
            while let rest = try reader.next() { PQclear(rest) }
            throw refusal
        }
        do {
            while let chunk = try next() {
                try put(chunk, on: handle, limit: limit)
            }
        } catch {
            _ = PQputCopyEnd(handle.pointer, "called off")
            _ = try? collect(handle, deadline: limit) { _ throws(PostgresError) in }
            throw error
        }
        guard PQputCopyEnd(handle.pointer, nil) >= 0 else { throw broken(handle) }
        return try collect(handle, deadline: limit, honoursCancel: false) { _ throws(PostgresError) in }.affected
    }

    private func put(_ chunk: [UInt8], on handle: Handle, limit: Duration) throws(PostgresError) {
        let deadline = ContinuousClock.now + limit
        while true {
            let taken = chunk.withUnsafeBytes { bytes in
                PQputCopyData(
                    handle.pointer, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
            }
            if taken == 1 { return }
            if taken < 0 { throw broken(handle) }
            if handle.wait(writing: true, until: deadline, interrupt: nil) == .deadline {
                throw .timedOut(after: limit)
            }
            if PQconsumeInput(handle.pointer) == 0 || PQflush(handle.pointer) < 0 {
                throw .lost(reason: handle.complaint)
            }
        }
    }
}
