#if SwiftMetrics
    import Metrics
    public import Millrace

    /// Sends a worker's metrics to swift-metrics. Their names and labels are those that ``Millrace/MetricsReceiver`` lists; labels
    /// become dimensions.
    ///
    /// ```swift
    /// MetricsSystem.bootstrap(PrometheusMetricsFactory())
    /// let worker = Worker(metrics: SwiftMetricsReceiver())
    /// ```
    public struct SwiftMetricsReceiver: MetricsReceiver {
        /// Sends to the factory that the program has given to `MetricsSystem.bootstrap`.
        public init() {}

        /// Adds to a counter.
        public func add(_ count: Int, to counter: String, labels: [String: String]) {
            Counter(label: counter, dimensions: dimensions(labels)).increment(by: count)
        }

        /// Sets a gauge.
        public func set(_ gauge: String, to value: Double, labels: [String: String]) {
            Gauge(label: gauge, dimensions: dimensions(labels)).record(value)
        }

        /// Records a duration in a timer.
        public func record(_ duration: Duration, of timer: String, labels: [String: String]) {
            let (seconds, attoseconds) = duration.components
            Timer(label: timer, dimensions: dimensions(labels))
                .recordNanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
        }

        /// In one order: systems tell series apart by it.
        private func dimensions(_ labels: [String: String]) -> [(String, String)] {
            labels.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        }
    }
#endif
