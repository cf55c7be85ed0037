import FoundationEssentials
import Postgres
import TestSupport
import Testing

@Suite struct SyncDeviceTests {
    @Test func `a token names its person and tenant, and is kept as a hash alone`() async throws {
        try await SyncWorld.with { world in
            let phone = try await world.database.connect()
            try await phone.run(
                #"select set_config('request.jwt.claims', '{"sub": "ada", "tenant": "acme", "role": "authenticated", "email": "ada@example.com"}', false)"#
            )
            let token = try #require(
                try await phone.value("select millrace.sync_device_add('phone-1', 'Ada''s phone')"))
            #expect(
                token.count == 43
                    && token.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_".contains($0)) })
            let claims = try await world.owner.value("select millrace.sync_device_claims('\(token)') - 'exp'")
            #expect(claims == #"{"sub": "ada", "role": "authenticated", "device": "phone-1", "tenant": "acme"}"#)
            #expect(
                try await world.owner.bool(
                    "select (millrace.sync_device_claims('\(token)') ->> 'exp')::float8 between extract(epoch from millrace.now()) + 89 * 86400 and extract(epoch from millrace.now()) + 90 * 86400"
                ))
            #expect(
                try await world.owner.int("select count(*) from millrace.sync_device d where d::text like '%\(token)%'")
                    == 0)
            for wrong in ["'\(token)x'", "'\(String(token.reversed()))'", "''", "null"] {
                #expect(try await world.owner.value("select millrace.sync_device_claims(\(wrong))") == nil)
            }
            let second = try await phone.value("select millrace.sync_device_add('phone-1')") ?? ""
            #expect(try await world.owner.value("select millrace.sync_device_claims('\(token)')") == nil)
            #expect(try await phone.column("select device from millrace.sync_devices()") == ["phone-1"])
            #expect(try await phone.bool("select millrace.sync_device_remove('phone-1')"))
            #expect(try await phone.bool("select millrace.sync_device_remove('phone-1')") == false)
            #expect(try await world.owner.value("select millrace.sync_device_claims('\(second)')") == nil)
            await phone.close()
        }
    }

    @Test func `use extends a token, and without it ninety days are the end`() async throws {
        try await SyncWorld.with { world in
            let phone = try await world.phone(of: "ada")
            let token = try await phone.value("select millrace.sync_device_add('phone')") ?? ""
            for _ in 0..<3 {
                try await world.owner.run("select millrace.test_clock_advance('80 days'), millrace.gateway_expire()")
                #expect(try await world.owner.value("select millrace.sync_device_claims('\(token)')") != nil)
            }
            try await world.owner.run("select millrace.test_clock_advance('90 days 1 minute')")
            #expect(try await world.owner.value("select millrace.sync_device_claims('\(token)')") == nil)
            #expect(try await phone.column("select device from millrace.sync_devices()").isEmpty)
            try await world.owner.run("select millrace.gateway_expire()")
            #expect(try await world.owner.int("select count(*) from millrace.sync_device") == 0)
            await phone.close()
        }
    }

    @Test func `a device's token pushes as that device, adds none, and takes none but itself away`() async throws {
        try await SyncWorld.with { world in
            let phone = try await world.phone(of: "ada")
            try await phone.run("select millrace.sync_device_add('phone'), millrace.sync_device_add('tablet')")
            try await phone.run(#"select set_config('request.jwt.claims', '{"sub": "ada", "device": "phone"}', false)"#)
            #expect(try await world.push([SyncOp("mood_log", SyncTests.mood)], on: phone) == ["applied"])
            for call in [
                "sync_push('tablet', '[{}]')", "sync_device_add('third')", "sync_device_add('phone')",
                "sync_device_remove('tablet')",
            ] {
                #expect(try await phone.refusal(of: "select millrace.\(call)")?.sqlState == "42501", "\(call)")
            }
            #expect(try await phone.bool("select millrace.sync_device_remove('phone')"))
            let eve = try await world.phone(of: "eve")
            #expect(try await eve.bool("select millrace.sync_device_remove('tablet')") == false)
            #expect(try await eve.column("select device from millrace.sync_devices()").isEmpty)
            await eve.close()
            await phone.close()
        }
    }
}
