import Encodings

/// Where spans go, as the variables of OpenTelemetry say it. All of them are read here, and what is wrong is named.
package struct CollectorSettings: Sendable {
    /// With its path.
    package var endpoint: String
    /// Secret.
    package var headers: [(name: String, value: String)]
    package var sampling: TraceSampling
    /// `service.name` and what else says who this process is.
    package var resource: [TraceSpan.Attribute]

    /// nil: no collector is named, or tracing is switched off.
    package init?(
        endpoint: String?, tracesEndpoint: String?, headers: String?, serviceName: String?, attributes: String?,
        sampler: String?, argument: String?
    ) {
        guard let address = Self.address(endpoint: endpoint, tracesEndpoint: tracesEndpoint) else { return nil }
        self.endpoint = address
        self.headers = headers.flatMap(Self.pairs) ?? []
        sampling = TraceSampling(sampler: sampler ?? "parentbased_always_on", argument: argument) ?? .standard
        let given = attributes.flatMap(Self.pairs) ?? []
        let name = serviceName ?? given.last { $0.name == "service.name" }?.value ?? "millrace"
        resource = [.text("service.name", name)]
        resource += given.filter { $0.name != "service.name" }.map { .text($0.name, $0.value) }
    }

    /// The address for traces is taken as it is; the one for all signals gets the path of traces.
    package static func address(endpoint: String?, tracesEndpoint: String?) -> String? {
        if let tracesEndpoint, !tracesEndpoint.isEmpty { return tracesEndpoint }
        guard let endpoint, !endpoint.isEmpty else { return nil }
        return endpoint + (endpoint.hasSuffix("/") ? "" : "/") + "v1/traces"
    }

    /// `name=value,name=value` with %XX in values; nil: malformed.
    package static func pairs(_ text: String) -> [(name: String, value: String)]? {
        var pairs: [(name: String, value: String)] = []
        for entry in text.split(separator: ",") {
            let entry = trimmed(entry)
            if entry.isEmpty { continue }
            guard let equals = entry.firstIndex(of: "=") else { return nil }
            let name = trimmed(entry[..<equals])
            guard !name.isEmpty, let value = PercentEncoding.decoded(trimmed(entry[entry.index(after: equals)...]))
            else { return nil }
            pairs.append((name: String(name), value: value))
        }
        return pairs
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var rest = text.drop { $0 == " " }
        while rest.last == " " { rest.removeLast() }
        return rest
    }
}
