import Foundation
import Signatures
import Threads

/// A root, an intermediate and a leaf, made by openssl, and documents that the leaf's key signs.
package struct CertificateChain: Sendable {
    package let root: [UInt8]
    package let rootPEM: [UInt8]
    package let chain: [[UInt8]]
    private let key: SigningKey

    package static let leafMark = "1.2.840.113635.100.6.11.1=ASN1:NULL"
    package static let intermediateMark = "1.2.840.113635.100.6.2.1=ASN1:NULL"

    package static func make(
        leafMark: String = leafMark, intermediateMark: String = intermediateMark, isAuthority: Bool = true,
        days: Int = 30
    ) async throws -> CertificateChain {
        let place = FileManager.default.temporaryDirectory.appending(path: "chain-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: place) }
        func openssl(_ line: String) async throws {
            try await Self.run(line, in: place)
        }
        try "basicConstraints=critical,CA:\(isAuthority ? "TRUE" : "FALSE")\n\(intermediateMark)\n".write(
            to: place.appending(path: "middle.ext"), atomically: true, encoding: .utf8)
        try "basicConstraints=critical,CA:FALSE\n\(leafMark)\n".write(
            to: place.appending(path: "leaf.ext"), atomically: true, encoding: .utf8)
        try await openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-384 -nodes -keyout root.key -out root.pem -days \(days) -subj /CN=root -addext keyUsage=keyCertSign"
        )
        for (name, issuer) in [("middle", "root"), ("leaf", "middle")] {
            try await openssl(
                "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout \(name).key -out \(name).csr -subj /CN=\(name)"
            )
            try await openssl(
                "x509 -req -in \(name).csr -CA \(issuer).pem -CAkey \(issuer).key -CAcreateserial -days \(days) -sha256 -extfile \(name).ext -out \(name).pem"
            )
        }
        var ders: [[UInt8]] = []
        for name in ["leaf", "middle", "root"] {
            try await openssl("x509 -in \(name).pem -outform DER -out \(name).der")
            ders.append(Array(try Data(contentsOf: place.appending(path: "\(name).der"))))
        }
        return CertificateChain(
            root: ders[2], rootPEM: Array(try Data(contentsOf: place.appending(path: "root.pem"))), chain: ders,
            key: try SigningKey(pem: Array(try Data(contentsOf: place.appending(path: "leaf.key")))))
    }

    private struct Failed: Error { let line: String }

    private static func run(_ line: String, in place: URL) async throws {
        try await Thread.run(name: "openssl") {
            Result {
                let process = Process()
                process.executableURL = URL(filePath: "/usr/bin/env")
                process.arguments = ["openssl"] + line.split(separator: " ").map(String.init)
                process.currentDirectoryURL = place
                process.standardError = FileHandle.nullDevice
                process.standardOutput = FileHandle.nullDevice
                try process.run()
                process.waitUntilExit()
                if process.terminationStatus != 0 { throw Failed(line: line) }
            }
        }.get()
    }

    package func sign(_ payload: String, algorithm: String = "ES256", chain: [[UInt8]]? = nil) -> String {
        let certificates = (chain ?? self.chain).map { "\"\(Data($0).base64EncodedString())\"" }
        return key.token(
            header: "{\"alg\":\"\(algorithm)\",\"x5c\":[\(certificates.joined(separator: ","))]}", payload: payload)
    }

    package func notification(
        bundle: String = "com.example.app", environment: String = "Production", inner: String = "com.example.app",
        appID: String? = nil
    ) -> String {
        let transaction = sign(
            #"{"transactionId":"1","originalTransactionId":"1","bundleId":"\#(inner)","environment":"\#(environment)"}"#
        )
        let renewal = sign(#"{"originalTransactionId":"1","autoRenewStatus":1,"environment":"\#(environment)"}"#)
        let app = appID.map { "\"appAppleId\":\($0)," } ?? ""
        return sign(
            #"{"notificationType":"DID_RENEW","notificationUUID":"u","signedDate":1,"data":{\#(app)"bundleId":"\#(bundle)","environment":"\#(environment)","transaction":"forged","signedTransactionInfo":"\#(transaction)","signedRenewalInfo":"\#(renewal)"}}"#
        )
    }
}
