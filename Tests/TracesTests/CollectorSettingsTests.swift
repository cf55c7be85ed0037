import Testing
import Traces

@Suite struct CollectorSettingsTests {
    private func settings(
        endpoint: String? = "http://collector:4318", traces: String? = nil, headers: String? = nil,
        name: String? = nil, attributes: String? = nil
    ) -> CollectorSettings? {
        CollectorSettings(
            endpoint: endpoint, tracesEndpoint: traces, headers: headers, serviceName: name, attributes: attributes,
            sampler: nil, argument: nil)
    }

    @Test func `the address of traces is taken as it is, and that of all signals gets their path`() {
        #expect(settings()?.endpoint == "http://collector:4318/v1/traces")
        #expect(settings(endpoint: "https://c/x/")?.endpoint == "https://c/x/v1/traces")
        #expect(settings(traces: "https://c/own")?.endpoint == "https://c/own")
        #expect(settings(endpoint: nil) == nil)
        #expect(settings(endpoint: "") == nil)
    }

    @Test func `pairs have percent codes, and a malformed list is none`() {
        let pairs = CollectorSettings.pairs("authorization=Bearer%20x%3D1, x-team = a ,,")
        #expect(pairs?.map(\.name) == ["authorization", "x-team"])
        #expect(pairs?.map(\.value) == ["Bearer x=1", "a"])
        #expect(CollectorSettings.pairs("")?.isEmpty == true)
        for wrong in ["a", "=b", "a=%4", "a=%+1", "a=%zz", "a=%ff"] {
            #expect(CollectorSettings.pairs(wrong) == nil, "\(wrong)")
        }
    }

    @Test func `a process says its name, which its attributes may hold, too`() {
        #expect(settings()?.resource == [.text("service.name", "millrace")])
        let attributes = "service.name=shop,deployment.environment=test"
        #expect(
            settings(attributes: attributes)?.resource == [
                .text("service.name", "shop"), .text("deployment.environment", "test"),
            ])
        #expect(
            settings(name: "mail", attributes: attributes)?.resource.first == .text("service.name", "mail"))
    }
}
