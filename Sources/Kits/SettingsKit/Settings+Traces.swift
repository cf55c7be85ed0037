package import Traces

/// Of traces: the names are OpenTelemetry's, so that one environment says it to all programs.
extension Setting {
    package static let tracing: [Setting] = [
        otlpEndpoint, otlpTracesEndpoint, otlpHeaders, otelServiceName, otelResourceAttributes, otelTracesSampler,
        otelTracesSamplerArgument,
    ]

    package static let otlpEndpoint = Setting(
        "otlp-endpoint", environment: "OTEL_EXPORTER_OTLP_ENDPOINT", address, valueName: "URL",
        help: "The OpenTelemetry collector that receives spans, over OTLP/HTTP at the path /v1/traces.")
    package static let otlpTracesEndpoint = Setting(
        "otlp-traces-endpoint", environment: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", address, valueName: "URL",
        help: "The full address for traces, if it differs.")
    package static let otlpHeaders = Setting(
        "otlp-headers", environment: "OTEL_EXPORTER_OTLP_HEADERS", pairs, secrecy: .hidden, valueName: "NAME=VALUE,…",
        help: "Headers for the collector, such as authorization=Bearer%20….")
    package static let otelServiceName = Setting(
        "otel-service-name", environment: "OTEL_SERVICE_NAME", .text, valueName: "NAME",
        help: "The name of this program in traces; millrace by default.")
    package static let otelResourceAttributes = Setting(
        "otel-resource-attributes", environment: "OTEL_RESOURCE_ATTRIBUTES", pairs, valueName: "NAME=VALUE,…",
        help: "More attributes of this program in traces, such as deployment.environment=production.")
    package static let otelTracesSampler = Setting(
        "otel-traces-sampler", environment: "OTEL_TRACES_SAMPLER", .choice(TraceSampling.names),
        fallback: "parentbased_always_on", valueName: "NAME", help: "Which traces are recorded.")
    package static let otelTracesSamplerArgument = Setting(
        "otel-traces-sampler-arg", environment: "OTEL_TRACES_SAMPLER_ARG",
        .custom(expects: "a number from 0 to 1") { text in
            TraceSampling(sampler: "traceidratio", argument: text) == nil ? "takes a number from 0 to 1" : nil
        }, valueName: "SHARE", help: "The share of traces to record, for samplers with ratio in their name.")

    private static let address = ValueKind.custom(expects: "a URL such as http://collector:4318") { text in
        ["http://", "https://"].contains { text.lowercased().hasPrefix($0) && text.utf8.count > $0.utf8.count }
            ? nil : "takes a URL that begins with http:// or https://"
    }

    private static let pairs = ValueKind.custom(expects: "pairs such as name=value,name=value") { text in
        CollectorSettings.pairs(text) == nil ? "takes pairs such as name=value,name=value, with %XX in values" : nil
    }
}

extension Settings {
    /// nil: no collector is named, and no traces are recorded.
    package var collector: CollectorSettings? {
        CollectorSettings(
            endpoint: text(.otlpEndpoint), tracesEndpoint: text(.otlpTracesEndpoint), headers: text(.otlpHeaders),
            serviceName: text(.otelServiceName), attributes: text(.otelResourceAttributes),
            sampler: text(.otelTracesSampler), argument: text(.otelTracesSamplerArgument))
    }
}
