import TestSupport
import Testing

@testable import Gateway

/// Pages of other origins, and links.
@Suite(.timeLimit(.minutes(10))) struct CrossOriginTests {
    @Test func `pages of listed origins may call, and others are not told that they may`() async throws {
        var setup = GatewayWorld.Setup()
        setup.change = { $0.origins = ["https://app.example.com"] }
        try await GatewayWorld.with(setup) { world in
            let asks = [
                "Origin": "https://app.example.com", "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization,content-type",
            ]
            let allowed = try await world.ask("OPTIONS", "/v1/rpc/now", as: nil, headers: asks)
            #expect(allowed.status == 204)
            #expect(allowed.header("access-control-allow-origin") == "https://app.example.com")
            #expect(allowed.header("access-control-allow-methods") == "POST")
            #expect(allowed.header("access-control-allow-headers")?.contains("Idempotency-Key") == true)
            #expect(allowed.header("access-control-allow-credentials") == nil && allowed.header("vary") == "Origin")
            for origin in [
                "https://app.example.com.evil.example", "http://app.example.com", "null", "https://APP.example.com",
            ] {
                let other = try await world.ask(
                    "OPTIONS", "/v1/rpc/now", as: nil,
                    headers: ["Origin": origin, "Access-Control-Request-Method": "POST"])
                #expect(other.status == 204 && other.header("access-control-allow-origin") == nil, "\(origin)")
                let call = try await world.call("now", headers: ["Origin": origin])
                #expect(call.header("access-control-allow-origin") == nil, "\(origin)")
            }
            let call = try await world.call("now", headers: ["Origin": "https://app.example.com"])
            #expect(call.header("access-control-allow-origin") == "https://app.example.com")
            #expect(call.header("access-control-expose-headers")?.contains("Retry-After") == true)
            // Also what is refused, or the page could not read why.
            let refused = try await world.call("nothing", headers: ["Origin": "https://app.example.com"])
            #expect(refused.status == 404 && refused.header("access-control-allow-origin") == "https://app.example.com")
            let early = try await world.ask(
                "PATCH", "/v1/batch", headers: ["Origin": "https://app.example.com"])
            #expect(early.status == 405 && early.header("access-control-allow-origin") == "https://app.example.com")
            let head = try await world.ask("HEAD", "/v1/openapi.json", as: nil)
            #expect(head.status == 200 && head.text.isEmpty)
        }
    }

    @Test func `a document's file is reached by a link, and another person's is not there`() async throws {
        try await GatewayWorld.with { world in
            try await world.owner.run(
                """
                create or replace function millrace.document_link(id uuid, kind text default 'pdf', valid interval default '1 hour', actor text default null, caller millrace.caller_name default current_user)
                returns text language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$ begin
                    if millrace.claims(document_link.caller) ->> 'sub' <> 'ada' then perform millrace.refuse('there is no such document', 'id', null, 'P0002', 'not_found'); end if;
                    return 'https://files.example.com/' || id || '/' || kind; end $$
                """)
            let id = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
            let link = try await world.ask("GET", "/v1/documents/\(id)/file?kind=original")
            #expect(
                link.status == 303 && link.header("location") == "https://files.example.com/\(id)/original",
                "\(link.text)")
            #expect(
                try await world.ask("GET", "/v1/documents/\(id)/file").header("location")?.hasSuffix("/pdf") == true)
            #expect(try await world.ask("GET", "/v1/documents/\(id)/file", as: "bob").status == 404)
            #expect(try await world.ask("GET", "/v1/documents/x/file").status == 404)
            #expect(try await world.ask("GET", "/v1/documents/\(id)/file", as: nil).status == 401)
        }
    }
}
