import FoundationEssentials
package import MillraceJobs

/// What runs the jobs of one kind.
package struct Handler: Sendable {
    package typealias Body = @Sendable ([UInt8], Context) async throws -> Verdict

    package var kind: String
    package var queue: String?
    package var retries: RetryPolicy
    package var timeout: Duration?
    package var whenCutOff: WhenCutOff
    /// Its arguments are expected to be sealed.
    package var encrypted = false
    package var refusesPlain = false
    /// The paths of arguments that can be searched, and of those that are hidden; nil: it says nothing.
    package var searchable: [String]?
    package var redacted: [String]?
    /// It also takes jobs that undo a step of another.
    package var takesUndos = false
    /// The versions of arguments that it reads; 0 stands for none.
    package var accepts = 0...0
    /// Runs one job, by itself.
    package var body: Body
    /// nil: every job runs by itself.
    package var chunks: ChunkOptions?

    package init(
        kind: String, queue: String? = nil, retries: RetryPolicy = .standard, timeout: Duration? = nil,
        whenCutOff: WhenCutOff = .keepRunning, body: @escaping Body
    ) {
        self.kind = kind
        self.queue = queue
        self.retries = retries
        self.timeout = timeout
        self.whenCutOff = whenCutOff
        self.body = body
    }

    package init<Work: Job>(
        _ type: Work.Type, queue: String? = nil, body: @escaping @Sendable (Work, Context) async throws -> Verdict
    ) {
        let decode = Self.decoding(type)
        self.init(
            kind: Work.kind, queue: queue, retries: Work.retries, timeout: Work.timeout, whenCutOff: Work.whenCutOff
        ) { args, context in
            try await body(try decode(args), context)
        }
        encrypted = Work.encrypted
        refusesPlain = Work.encrypted && Work.refusesPlain
        searchable = Work.searchable
        redacted = Work.redacted
        accepts = Work.accepts
    }

    /// The same handler, which also undoes steps of jobs that did not succeed.
    package var takingUndos: Handler {
        var other = self
        other.takesUndos = true
        return other
    }

    /// The lines of its kind whose jobs it takes, besides the kind itself: see `millrace.kind_line`.
    var lines: [String] {
        let versions = accepts.clamped(to: 1...1_000_000).suffix(Self.mostVersions).filter { accepts.contains($0) }
        let plain = takesUndos ? ["undo"] : []
        return plain + versions.flatMap { takesUndos ? ["v\($0)", "undo v\($0)"] : ["v\($0)"] }
    }

    private static let mostVersions = 32

    static func decoding<Work: Job>(_ type: Work.Type) -> @Sendable ([UInt8]) throws -> Work {
        let decoder = JSONDecoder()
        return { args in
            if let work = FastArgumentDecoder.decode(Work.self, from: args) { return work }
            do {
                return try decoder.decode(Work.self, from: Data(args))
            } catch {
                throw UndecodableArguments(kind: Work.kind, reason: sentence(error))
            }
        }
    }

    /// The place of the fault, and not the value: arguments may be private.
    private static func sentence(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "\(type(of: error))" }
        func path(_ context: DecodingError.Context) -> String {
            context.codingPath.isEmpty ? "the top level" : context.codingPath.map(\.stringValue).joined(separator: ".")
        }
        switch error {
        case .keyNotFound(let key, let context): return "\(key.stringValue) is missing at \(path(context))"
        case .typeMismatch(let type, let context): return "\(path(context)) is not a \(type)"
        case .valueNotFound(let type, let context): return "\(path(context)) is null, not \(type)"
        case .dataCorrupted(let context): return "\(path(context)) is malformed"
        @unknown default: return "they are malformed"
        }
    }
}

/// The arguments are not what the kind expects. Tried again all the same: a later version of the worker may understand them.
struct UndecodableArguments: Error, CustomStringConvertible {
    let kind: String
    let reason: String

    var description: String { "the arguments do not fit \(kind): \(reason)" }
}

/// Something around every run. Call `next` once to go on inwards.
package typealias Middleware = @Sendable (Context, _ next: @Sendable () async throws -> Verdict) async throws -> Verdict

/// The options a job carries that concern its run.
struct RunOptions: Decodable {
    struct Pauses: Decodable {
        var base: Double?
        var cap: Double?
    }

    var timeout: Double?
    var backoff: Pauses?
    var undo: Undo?
    var version: Int?
}
