extension Context {
    /// Reports how far the run has come, to everybody who watches the job. Returns at once; the worker writes the latest report of each of
    /// its runs a few times a second, and nothing for a run whose lease is lost.
    /// - Parameters:
    ///   - fraction: From 0 to 1.
    ///   - stage: What it is doing, of at most 128 characters.
    ///   - note: A line for people, of at most 1,000 characters.
    public func progress(_ fraction: Double? = nil, stage: String? = nil, note: String? = nil) {
        markReporting()
        backend.progress(self, JobProgress(fraction: fraction, stage: stage, note: note))
    }

    /// Writes a line to the worker's log, and keeps it with the job: its newest 200 lines and 64 KiB. A line is cut at 4,000
    /// characters.
    public func log(_ text: String, _ level: LogLine.Level = .info) {
        markReporting()
        backend.line(self, LogLine(text, level))
    }

    /// Sets the result that the job's caller can read once this run has ended with ``Verdict/done``; the last call counts. At most 1 MiB of
    /// JSON. A handler that returns ``Verdict/recorded`` passes its result to `millrace.complete` instead.
    public func result(_ value: some Encodable) throws(ResultError) {
        do throws(StoredJSON.Unfit) {
            keep(try StoredJSON.json(value))
        } catch {
            switch error {
            case .tooLarge(let bytes): throw .tooLarge(bytes: bytes)
            case .noJSON(let reason): throw .unencodable(reason: reason)
            }
        }
    }
}
