import Fakes
import HostNames
import Testing

@testable import Mail

@Suite struct DoctorTests {
    private static let key = "v=DKIM1; k=rsa; p=" + String(repeating: "A", count: 216)
    private static let good = [
        "send.a.example": ["v=spf1 include:amazonses.com ~all"], "amazonses.com": ["v=spf1 ip4:1.2.3.0/24 -all"],
        "resend._domainkey.a.example": [key], "_dmarc.a.example": ["v=DMARC1; p=reject; rua=mailto:r@a.example"],
    ]

    private func findings(_ dns: [String: [String]], mail: Int = 1, fails: String? = nil) async throws -> [MailDoctor
        .Finding]
    {
        let resolver = Resolver(
            texts: { name async throws(Resolver.Failure) in
                if name == fails { throw .unreachable }
                return dns[name] ?? []
            }, count: { _, _ async throws(Resolver.Failure) in mail })
        return try await MailDoctor(resolver: resolver).examine(.resend("A.example"))
    }

    @Test func `a domain in order has nothing to do`() async throws {
        let found = try await findings(Self.good)
        #expect(found.map(\.check) == ["SPF", "DKIM", "DMARC"])
        #expect(found.allSatisfy { $0.weight == .fine && $0.advice.isEmpty })
    }

    @Test(arguments: [
        ("send.a.example", [], "SPF", MailDoctor.Weight.critical, "no SPF record"),
        ("send.a.example", ["other", "v=spf1x"], "SPF", .critical, "no SPF record"),
        ("send.a.example", ["v=spf1 -all", "v=spf1 ~all"], "SPF", .critical, "counts as none"),
        ("send.a.example", ["v=spf1 -all"], "SPF", .critical, "does not name the provider"),
        ("send.a.example", ["v=spf1 include:amazonses.com +all"], "SPF", .critical, "everybody"),
        ("send.a.example", ["v=spf1 include:amazonses.com ?all"], "SPF", .warning, "undecided"),
        ("send.a.example", ["v=spf1 include:amazonses.com"], "SPF", .warning, "all other senders"),
        (
            "send.a.example", ["v=spf1 include:amazonses.com include:none.example ~all"], "SPF", .critical,
            "which has none"
        ),
        ("amazonses.com", ["v=spf1 include:send.a.example ~all"], "SPF", .critical, "circle"),
        ("amazonses.com", ["v=spf1 a mx a:b a:c a:d a:e a:f a:g a:h a:i ~all"], "SPF", .critical, "11 look-ups"),
        ("amazonses.com", ["v=spf1 bogus ~all"], "SPF", .critical, "an invalid part"),
        ("resend._domainkey.a.example", [], "DKIM", .critical, "no key"),
        ("resend._domainkey.a.example", ["p="], "DKIM", .critical, "withdrawn"),
        ("resend._domainkey.a.example", ["p=AAAA"], "DKIM", .critical, "shorter"),
        ("resend._domainkey.a.example", [key + "; t=y"], "DKIM", .warning, "tested"),
        ("_dmarc.a.example", [], "DMARC", .critical, "no DMARC record"),
        ("_dmarc.a.example", ["v=DMARC1; p=none; rua=mailto:x"], "DMARC", .notice, "asks for nothing"),
        ("_dmarc.a.example", ["v=DMARC1; p=quarantine"], "DMARC", .notice, "no reports"),
        ("_dmarc.a.example", ["v=DMARC1; p=maybe"], "DMARC", .critical, "no valid policy"),
        ("_dmarc.a.example", ["v=DMARC1; p=none", "v=DMARC1; p=none"], "DMARC", .critical, "counts as none"),
    ])
    func `each fault is found, with what to do`(
        name: String, records: [String], check: String, weight: MailDoctor.Weight, says: String
    ) async throws {
        var dns = Self.good
        dns[name] = records
        let found = try await findings(dns).filter { $0.weight != .fine }
        let finding = try #require(found.first { $0.what.contains(says) })
        #expect(finding.check == check && finding.weight == weight && !finding.advice.isEmpty)
    }

    @Test func `a silent DNS is no finding about the domain`() async throws {
        for name in Self.good.keys {
            let found = try await findings(Self.good, fails: name)
            #expect(found.contains { $0.weight == .warning && $0.what.contains("does not answer") })
            #expect(!found.contains { $0.weight == .critical })
        }
        let found = try await findings(Self.good, mail: 0)
        #expect(found.contains { $0.weight == .warning && $0.what.contains("MX") })
        await #expect(throws: Complaint.self) { try await MailDoctor(resolver: .system).examine(.init(domain: "a b")) }
    }

    @Test func `a parent's DMARC record counts`() async throws {
        var dns = Self.good
        dns["_dmarc.a.example"] = nil
        let resolver = Resolver(
            texts: { [dns] name async throws(Resolver.Failure) in
                name == "_dmarc.a.example" ? ["v=DMARC1; p=reject; sp=none; rua=mailto:x"] : dns[name] ?? []
            }, count: { _, _ async throws(Resolver.Failure) in 1 })
        let found = try await MailDoctor(resolver: resolver).examine(.init(domain: "news.a.example"))
        #expect(found.last?.weight == .notice && found.last?.what.contains("_dmarc.a.example") == true)
    }
}
