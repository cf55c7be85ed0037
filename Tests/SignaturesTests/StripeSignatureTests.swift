import Encodings
import FoundationEssentials
import Testing

@testable import Signatures

@Suite struct StripeSignatureTests {
    private static let secret = "whsec_0123456789abcdefghijklmnop"
    private static let other = "whsec_ponmlkjihgfedcba9876543210"
    private static let body = Array(#"{"id": "evt_1"}"#.utf8)
    private static let stamp = 1_790_000_000

    private static func sign(_ body: [UInt8], _ stamp: Int, _ secret: String) -> String {
        Hexadecimal.text(HMAC.sha256(Array("\(stamp).".utf8) + body, key: Array(secret.utf8)))
    }

    private static let good = sign(body, stamp, secret)

    private func verdict(
        _ header: String?, body: [UInt8] = body, secrets: String = secret, now: Int = stamp
    ) throws -> StripeSignature.Refusal? {
        let secrets = try #require(StripeSignature.Secret.list(secrets))
        do throws(StripeSignature.Refusal) {
            try StripeSignature.verify(
                body, header: header, with: secrets, at: Date(timeIntervalSince1970: Double(now)))
            return nil
        } catch {
            return error
        }
    }

    @Test func `a signature counts for five minutes on either side`() throws {
        let header = "t=\(Self.stamp),v1=\(Self.good)"
        for apart in [0, 300, -300] { #expect(try verdict(header, now: Self.stamp + apart) == nil) }
        #expect(try verdict(header, now: Self.stamp + 301) == .tooOld)
        #expect(try verdict(header, now: Self.stamp - 301) == .tooNew)
    }

    @Test func `any of the signatures by any of the secrets will do`() throws {
        let wrong = String(repeating: "0", count: 64)
        for header in [
            "t=\(Self.stamp),v1=\(wrong),v1=\(Self.good)", "v1=\(Self.good),t=\(Self.stamp),v0=\(wrong)",
            "t=\(Self.stamp), v1=\(Self.good)",
        ] {
            for secrets in [Self.secret, "\(Self.other) \(Self.secret)", "\(Self.secret)|\(Self.other)"] {
                #expect(try verdict(header, secrets: secrets) == nil)
            }
            #expect(try verdict(header, secrets: Self.other) == .noMatch)
        }
    }

    @Test func `another body, another time and another scheme are refused`() throws {
        #expect(try verdict("t=\(Self.stamp),v1=\(Self.good)", body: Self.body + [0x20]) == .noMatch)
        #expect(try verdict("t=\(Self.stamp + 1),v1=\(Self.good)") == .noMatch)
        #expect(try verdict("t=\(Self.stamp),v0=\(Self.good)") == .malformed)
        for header in [
            nil, "", "t=1", "v1=\(Self.good)", "t=x,v1=\(Self.good)", "t=-1,v1=\(Self.good)",
            "t=\(Self.stamp),t=\(Self.stamp),v1=\(Self.good)", "nonsense", "t=\(Self.stamp),v1=",
        ] {
            #expect(try verdict(header) == .malformed, "\(header ?? "none")")
        }
    }

    @Test func `a secret is text as Stripe shows it, and never prints`() throws {
        for text in ["", "whsec_", "0123456789abcdefghijklmnop", "whsec_short", "\(Self.secret) x"] {
            #expect(StripeSignature.Secret.list(text) == nil, "\(text)")
        }
        #expect("\(try #require(StripeSignature.Secret(Self.secret)))" == "a secret")
    }
}
