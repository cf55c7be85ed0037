import Postgres
import TestSupport
import Testing

/// What a signed-in person may point at others: devices and addresses that it claims as its own.
@Suite struct OwnAddressTests {
    private func signIn(_ person: String?, on connection: Connection) async throws {
        let claims = person.map { #"{"sub": "\#($0)"}"# } ?? ""
        try await connection.run("select set_config('request.jwt.claims', '\(claims)', false)")
    }

    private func prefer(_ person: String, _ channels: String) -> String {
        "select millrace.notice_preferences('\(person)', 'UTC', '0:00', '0:00', '\(channels)', null)"
    }

    @Test func `twenty devices a day are added, and a known one is not counted`() async throws {
        try await withConnection(.movableClock) { connection in
            try await signIn("eve", on: connection)
            for n in 0..<20 {
                try await connection.run("select millrace.device_add('eve', 'fcm', 'token-000\(n)')")
                try await connection.run("select millrace.device_add('eve', 'fcm', 'token-0000')")
            }
            let add = "select millrace.device_add('eve', 'fcm', 'token-more')"
            #expect(try await connection.refusal(of: add)?.sqlState == "53400")
            try await signIn(nil, on: connection)  // a back end knows its devices
            try await connection.run("select millrace.device_add('eve', 'fcm', 'token-server', actor => 'eve')")
            try await connection.run("select millrace.test_clock_advance('1 day')")
            try await signIn("eve", on: connection)
            #expect(try await connection.refusal(of: add) == nil)
        }
    }

    @Test func `a person gives five new addresses a day, and an address is given by three people`() async throws {
        try await withConnection(.movableClock) { connection in
            try await signIn("eve", on: connection)
            for n in 0..<5 { try await connection.run(prefer("eve", "{\"mail\": \"m\(n)@example.com\"}")) }
            try await connection.run(prefer("eve", #"{"mail": "M4@example.com", "push": true}"#))  // as it was
            #expect(
                try await connection.refusal(of: prefer("eve", #"{"mail": "m0@example.com"}"#))?.sqlState == "53400")
            for person in ["p1", "p2", "p3", "p4"] {
                try await signIn(person, on: connection)
                let refusal = try await connection.refusal(
                    of: prefer(person, #"{"sms": "+4915112345678", "voice": "+4915112345678"}"#))
                #expect(refusal?.sqlState == (person == "p4" ? "53400" : nil), "\(person)")
            }
            try await signIn(nil, on: connection)
            try await connection.run(
                "select millrace.notice_preferences('p4', 'UTC', '0:00', '0:00', '{\"sms\": \"+4915112345678\"}', null, 'p4')"
            )
        }
    }
}
