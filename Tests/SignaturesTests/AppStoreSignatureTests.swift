import Fakes
import Foundation
import JSON
import Testing

@testable import Signatures

@Suite struct AppStoreSignatureTests {
    private static let good = Task { try await CertificateChain.make() }

    private func reader(
        _ roots: [[UInt8]], bundle: String = "com.example.app", environments: [String] = ["Production"],
        appID: Int? = nil
    ) throws -> AppStoreSignature {
        AppStoreSignature(
            roots: try CertificateRoots(roots), bundle: bundle, environments: environments, appID: appID)
    }

    private func verdict(
        _ signed: String, _ reader: AppStoreSignature, at now: Date = .now
    ) -> AppStoreSignature.Refusal? {
        do throws(AppStoreSignature.Refusal) {
            _ = try reader.notification(signed, at: now)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a notification is read with what is signed inside it`() async throws {
        let chain = try await Self.good.value
        for root in [chain.root, chain.rootPEM] {
            let read = try reader([root]).notification(chain.notification(), at: .now)
            #expect(read["data"]?["transaction"]?["transactionId"]?.text == "1")
            #expect(read["data"]?["renewal"]?["autoRenewStatus"]?.integer == 1)
            #expect(read["data"]?["signedTransactionInfo"] == nil)
        }
    }

    @Test func `only a chain to a trusted root counts, while it is valid`() async throws {
        let (chain, other) = (try await Self.good.value, try await CertificateChain.make())
        let own = try reader([chain.root])
        let signed = chain.notification()
        #expect(verdict(signed, own) == nil)
        #expect(verdict(signed, try reader([other.root])) == .chain)
        #expect(verdict(signed, try reader([other.root, chain.root])) == nil)
        #expect(verdict(other.notification(), own) == .chain)
        #expect(verdict(signed, own, at: .now + 31 * 86_400) == .chain)
        #expect(verdict(signed, own, at: .now - 86_400) == .chain)
        // The root need not be sent; the intermediate must, and nothing else stands for the leaf.
        let body = #"{"notificationType":"TEST"}"#
        #expect(verdict(chain.sign(body, chain: Array(chain.chain.prefix(2))), own) == nil)
        #expect(verdict(chain.sign(body, chain: [chain.chain[0], chain.root]), own) == .chain)
        #expect(verdict(chain.sign(body, chain: [chain.root, chain.chain[1], chain.root]), own) == .chain)
        #expect(verdict(chain.sign(body, chain: [chain.chain[0], other.chain[1], other.root]), own) == .chain)
        #expect(verdict(chain.sign(body, chain: [other.chain[0], other.chain[1], other.root]), own) == .chain)
        #expect(verdict(chain.sign(body, chain: []), own) == .chain)
        #expect(verdict(chain.sign(body, chain: [[1, 2, 3], [4]]), own) == .chain)
    }

    @Test func `certificates without Apple's marks, and an intermediate that may not issue, are refused`() async throws
    {
        let chains = [
            try await CertificateChain.make(leafMark: "1.2.3.4=ASN1:NULL"),
            try await CertificateChain.make(intermediateMark: "1.2.3.4=ASN1:NULL"),
            try await CertificateChain.make(isAuthority: false),
        ]
        for chain in chains { #expect(verdict(chain.notification(), try reader([chain.root])) == .chain) }
    }

    @Test func `another app, another environment and another hand are refused`() async throws {
        let chain = try await Self.good.value
        let own = try reader([chain.root])
        #expect(verdict(chain.notification(bundle: "com.example.other"), own) == .bundle)
        #expect(verdict(chain.notification(inner: "com.example.other"), own) == .bundle)
        #expect(verdict(chain.notification(environment: "Sandbox"), own) == .environment)
        #expect(
            verdict(chain.notification(environment: "Sandbox"), try reader([chain.root], environments: ["Sandbox"]))
                == nil)
        #expect(verdict(chain.sign("{}", algorithm: "none"), own) == .algorithm)
        #expect(verdict(chain.sign(#"{"a":1,"a":2}"#), own) == .malformed)
        #expect(verdict(chain.sign(#"{"data":{"bundleId":"com.example.app"}}"#), own) == .environment)
        for text in ["", "a.b", "a.b.c.d", "e30.e30.e30"] { #expect(verdict(text, own) != nil, "\(text)") }
        // Each byte of the signature and of the payload counts.
        let parts = chain.notification().split(separator: ".").map(String.init)
        for place in [0, parts[2].count / 2] {
            var changed = Array(parts[2])
            changed[place] = changed[place] == "A" ? "B" : "A"
            #expect(verdict("\(parts[0]).\(parts[1]).\(String(changed))", own) == .signature)
        }
        let body = Base64URL.encode(Array(#"{"notificationType":"REVOKE"}"#.utf8))
        #expect(verdict("\(parts[0]).\(body).\(parts[2])", own) == .signature)
    }

    @Test func `in production the number of the app in the store has to be ours, where it is configured`() async throws
    {
        let chain = try await Self.good.value
        let own = try reader([chain.root], environments: ["Production", "Sandbox"], appID: 41)
        #expect(verdict(chain.notification(appID: "41"), own) == nil)
        for other in ["42", "\"41\"", "41.5", "-41", "null", "99999999999999999999"] {
            #expect(verdict(chain.notification(appID: other), own) == .app, "\(other)")
        }
        #expect(verdict(chain.notification(), own) == .app, "production names it")
        #expect(verdict(chain.notification(environment: "Sandbox"), own) == nil, "the sandbox does not")
        #expect(verdict(chain.notification(appID: "42"), try reader([chain.root])) == nil, "it is not configured")
    }

    @Test func `a file that is no certificate is no root`() throws {
        for file in [[], [1, 2, 3], Array("-----BEGIN CERTIFICATE-----".utf8)] as [[UInt8]] {
            #expect(throws: CertificateRoots.Unusable.self) { try CertificateRoots([file]) }
        }
        #expect(throws: CertificateRoots.Unusable.self) { try CertificateRoots([]) }
    }
}
