import Fakes
import Postgres
import TestSupport
import Testing
import Webhooks

@Suite struct CarriedTraceDeliveryTests {
    @Test func `a request for an event of a trace names that trace, and another names none`() async throws {
        try await withBench { bench in
            let receiver = try FakeReceiver()
            defer { receiver.stop() }
            try await bench.add(receiver.url, handshake: false)
            let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            try await bench.connection.run(
                """
                begin;
                set local millrace.traceparent = '\(given)';
                set local millrace.tracestate = 'a=b';
                select millrace.event_publish('com.example.paid', '/shop', '1');
                commit;
                select millrace.event_publish('com.example.sent', '/shop', '2');
                """)
            let dispatch = try bench.dispatch([receiver])
            for _ in 0..<3 { try await dispatch.runOnce() }
            let paid = try #require(receiver.posts.first { $0["ce-type"] == "com.example.paid" })
            #expect(paid["traceparent"] == given && paid["tracestate"] == "a=b")
            #expect(paid["ce-traceparent"] == given)
            let sent = try #require(receiver.posts.first { $0["ce-type"] == "com.example.sent" })
            #expect(sent["traceparent"] == nil && sent["ce-traceparent"] == nil)
        }
    }
}
