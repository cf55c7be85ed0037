import TestSupport
import Testing

@testable import Gateway

/// A call belongs to the trace that its headers name: see `deploy/guides/traces.md`.
@Suite(.timeLimit(.minutes(10))) struct CallTraceTests {
    /// Answers with the place in a trace that the statement of a call finds, and with that of a job which it enqueues.
    private static let script = """
        create function millrace.trace_told() returns text language sql as $$
            select coalesce(nullif(current_setting('millrace.traceparent', true), ''), 'none') || ' '
                || coalesce(nullif(current_setting('millrace.tracestate', true), ''), 'none') $$;
        create function millrace.trace_job() returns text language plpgsql security definer as $$
            declare made bigint := millrace.enqueue('traced.job');
            begin
                return (select coalesce(j.metadata ->> 'traceparent', 'none') from millrace.job j where j.id = made);
            end $$;
        grant execute on function millrace.trace_told(), millrace.trace_job() to ROLE;
        """
    private static let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @Test func `the headers traceparent and tracestate of a call reach what it enqueues`() async throws {
        try await GatewayWorld.with(.init(script: Self.script)) { world in
            let headers = ["traceparent": Self.given, "tracestate": "a=b"]
            let told = try await world.call("trace_told", headers: headers)
            #expect(told.text == "\"\(Self.given) a=b\"\n")
            let job = try await world.call("trace_job", headers: headers)
            #expect(job.text == "\"\(Self.given)\"\n")
            // The same connection carries nothing on to the next call.
            let next = try await world.call("trace_told")
            #expect(next.text == "\"none none\"\n")
            let nextJob = try await world.call("trace_job")
            #expect(nextJob.text == "\"none\"\n")
        }
    }

    @Test(arguments: ["garbage", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0-0-0"])
    func `a malformed header is left out, and the call is answered`(header: String) async throws {
        try await GatewayWorld.with(.init(script: Self.script)) { world in
            let answer = try await world.call("trace_told", headers: ["traceparent": header, "tracestate": "a=b"])
            #expect(answer.status == 200 && answer.text == "\"none none\"\n", "\(answer.text)")
        }
    }
}
