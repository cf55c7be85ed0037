package import Telemetry
import Threads
package import Traces
import Transfers

/// Sends the spans of a process to a collector, by OTLP over HTTP in protobuf. It takes them from the tracer, whose bound holds whatever
/// happens here: while the collector is away nothing else notices.
///
/// The actor owns what it has told about the collector; one `run()` at a time sends.
package actor TraceExporter {
    package struct Options: Sendable {
        /// Spans in one request at most.
        package var batch = 512
        /// How long it gathers spans.
        package var pause = Duration.seconds(1)
        /// How long one request may take.
        package var timeout = Duration.seconds(10)
        /// How often a batch is tried before it is given up.
        package var tries = 5
        /// The pause before the second try, which doubles from try to try.
        package var backoff = Duration.seconds(1)
        /// How long it still sends at the end of the process.
        package var farewell = Duration.seconds(5)
        /// Between two lines of log about a collector that does not take spans.
        package var complains = Duration.seconds(60)

        package init() {}
    }

    private enum Answer: Sendable {
        case taken
        /// The collector does not want these; trying again cannot help.
        case refused(String)
        /// It may take them later; the wait is what it asks for.
        case away(String, wait: Duration?)
    }

    package nonisolated let tracer: Tracer
    private let settings: CollectorSettings
    private let version: String
    private let options: Options
    private let client: HTTPClient
    private let log: Log
    private var complained: ContinuousClock.Instant?

    package init(
        _ settings: CollectorSettings, tracer: Tracer, version: String, log: Log, options: Options = Options()
    ) {
        self.tracer = tracer
        self.settings = settings
        self.version = version
        self.options = options
        self.log = log
        client = HTTPClient(HTTPClient.Configuration())
    }

    /// Sends until it is cancelled, and then what is left, for as long as a farewell may take.
    package func run() async {
        var held: [TraceSpan] = []
        while !Task.isCancelled {
            if held.isEmpty { held = tracer.take(options.batch) }
            if held.isEmpty {
                await rest(options.pause)
            } else if await carry(held) {
                held = []
            }
        }
        let last = held
        await uncancelled { await self.leave(last) }
        client.close()
    }

    /// Sends a batch, as often as it takes; false: it is cancelled, and the batch is still to be sent.
    private func carry(_ spans: [TraceSpan]) async -> Bool {
        var pause = options.backoff
        for attempt in 1...max(1, options.tries) {
            let asked: Duration?
            switch await post(spans, within: options.timeout) {
            case .taken:
                tracer.sent(spans.count)
                return true
            case .refused(let why):
                tracer.failed(spans.count)
                complain(why)
                return true
            case .away(let why, let wait):
                if Task.isCancelled { return false }
                complain(why)
                asked = wait
            }
            guard attempt < options.tries else { break }
            await rest(max(pause, min(asked ?? .zero, .seconds(60))))
            if Task.isCancelled { return false }
            pause = min(pause * 2, .seconds(30))
        }
        tracer.failed(spans.count)
        return true
    }

    /// The last ones: each batch is tried once.
    private func leave(_ held: [TraceSpan]) async {
        let end = ContinuousClock.now + options.farewell
        var spans = held.isEmpty ? tracer.take(options.batch) : held
        while !spans.isEmpty {
            let left = ContinuousClock.now.duration(to: end)
            guard left > .zero, case .taken = await post(spans, within: min(left, options.timeout)) else {
                tracer.failed(spans.count + tracer.waiting)
                complain("the process ends")
                return
            }
            tracer.sent(spans.count)
            spans = tracer.take(options.batch)
        }
    }

    private func rest(_ pause: Duration) async {
        do { try await Task.sleep(for: pause) } catch {}  // cancelled: the caller looks at that
    }

    private func post(_ spans: [TraceSpan], within time: Duration) async -> Answer {
        var request = HTTPRequest("POST", settings.endpoint)
        request.headers.add("Content-Type", "application/x-protobuf")
        for (name, value) in settings.headers { request.headers.add(name, value) }
        request.body = .bytes(
            SpanEncoder.request(spans, resource: settings.resource, scope: "millrace", version: version))
        request.limits.total = time
        request.limits.connect = min(time, .seconds(5))
        request.limits.bodyBytes = 64 << 10
        request.isRepeatable = true  // a span that comes twice is one span: its number is the same
        do throws(TransferError) {
            let response = try await client.send(request)
            switch response.status {
            case 200...299: return .taken
            case 429, 502, 503, 504:
                let wait = response.headers["Retry-After"].flatMap { Int($0) }.map { Duration.seconds(max(0, $0)) }
                return .away("the collector answered \(response.status)", wait: wait)
            default: return .refused("the collector answered \(response.status)")
            }
        } catch {
            switch error.kind {
            case .invalid, .refused: return .refused(error.sentence)
            default: return .away(error.sentence, wait: nil)
            }
        }
    }

    /// Once a minute at most: a collector that is away is no trouble of the jobs.
    private func complain(_ why: String) {
        let now = ContinuousClock.now
        if let complained, complained.duration(to: now) < options.complains { return }
        complained = now
        let counts = tracer.counts
        log.warning(
            "spans could not be sent to the collector",
            [
                ("reason", why), ("spans.sent", "\(counts.sent)"), ("spans.failed", "\(counts.failed)"),
                ("spans.dropped", "\(counts.dropped)"),
            ])
    }
}
