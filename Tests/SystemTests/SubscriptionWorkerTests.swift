import Encodings
import Fakes
import Foundation
import Postgres
import Signatures
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Stores' messages over HTTP, to a real worker. `deploy/checks/subscriptions` has PyPI's packages make them.
@Suite struct SubscriptionWorkerTests {
    private static let secret = "whsec_0123456789abcdefghijklmnop"
    static let packages = ProcessInfo.processInfo.environment["MILLRACE_SUBSCRIPTION_PYTHON"]

    private func post(_ port: Int, _ path: String, _ body: String, signature: String? = nil) async -> String {
        guard let url = URL(string: "http://127.0.0.1:\(port)\(path)") else { return "" }
        var request = URLRequest(url: url, timeoutInterval: 20)
        request.httpMethod = "POST"
        request.httpBody = Data(body.utf8)
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        if let signature { request.setValue(signature, forHTTPHeaderField: "Stripe-Signature") }
        guard let (data, response) = try? await URLSession.shared.data(for: request) else { return "0" }
        return "\((response as? HTTPURLResponse)?.statusCode ?? 0) \(String(decoding: data, as: UTF8.self))"
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func sign(_ body: String, at time: Int = Int(Date().timeIntervalSince1970)) -> String {
        let mark = HMAC.sha256(Array("\(time).\(body)".utf8), key: Array(Self.secret.utf8))
        return "t=\(time),v1=\(Hexadecimal.text(mark))"
    }

    /// A worker that listens to both stores, and a folder with the root that it trusts.
    private func with(
        root: (URL) async throws -> Void, _ body: (Int, Connection) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "stores-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await root(folder)
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                "select millrace.subscription_plan_set('pro', '{\"pages\": 1000}', products => '{stripe:price_pro,apple:com.example.pro}')"
            )
            let port = try freePort()
            let worker = try await MillraceProcess.worker(
                "stores", database: database.url, ["--listen", "127.0.0.1:\(port)"],
                environment: [
                    "STRIPE_WEBHOOK_SECRET": Self.secret, "MILLRACE_APP_STORE_BUNDLE": "com.example.app",
                    "MILLRACE_APP_STORE_ROOT_FILES": folder.appending(path: "root.der").path,
                    "MILLRACE_APP_STORE_APP_ID": "41",
                ])
            try await body(port, connection)
            #expect(!worker.output.contains(Self.secret))
            worker.signal(SIGTERM)
            _ = try await worker.ended()
            await connection.close()
        }
    }

    @Test func `signed messages of both stores count once, and others not at all`() async throws {
        let chain = try await CertificateChain.make()
        try await with(root: { folder in try Data(chain.root).write(to: folder.appending(path: "root.der")) }) {
            port, connection in
            let (stripe, apple) = ("/v1/webhooks/stripe", "/v1/webhooks/app-store")
            let event = Self.stripe()
            for wrong in [nil, "t=1,v1=00", sign(event + " "), sign(event, at: 1_000_000_000)] {
                #expect(await post(port, stripe, event, signature: wrong).hasPrefix("401 "))
            }
            #expect(try await connection.int("select count(*) from millrace.subscription_event") == 0)
            let reasons = try await connection.column(
                "select why from millrace.subscription_refusal where store = 'stripe' order by 1")
            #expect(reasons.contains("no signature matches") && reasons.count == 3, "\(reasons)")
            for said in ["new", "known"] {
                #expect(await post(port, stripe, event, signature: sign(event)) == "200 {\"said\":\"\(said)\"}")
            }
            #expect(await post(port, stripe, "[]", signature: sign("[]")).hasPrefix("400 "))
            let notification = #"{"signedPayload":"\#(chain.subscribed())"}"#
            for said in ["new", "known"] {
                #expect(await post(port, apple, notification) == "200 {\"said\":\"\(said)\"}")
            }
            let other = try await CertificateChain.make()
            #expect(
                await post(port, apple, #"{"signedPayload":"\#(other.subscribed())"}"#).hasPrefix("401 "))
            #expect(
                await post(port, apple, #"{"signedPayload":"\#(chain.subscribed(appID: 42))"}"#).hasPrefix("401 "))
            #expect(await post(port, apple, "{}").hasPrefix("400 "))
            #expect(
                try await connection.column(
                    "select store || ' ' || state || ' ' || plan || ' ' || person from millrace.subscription order by 1"
                )
                    == ["apple active pro bob", "stripe active pro ada"])
        }
    }

    private static func stripe() -> String {
        let now = Int(Date().timeIntervalSince1970)
        return
            #"{"id":"evt_1","type":"customer.subscription.created","created":\#(now),"data":{"object":{"id":"sub_1","object":"subscription","status":"active","metadata":{"millrace_person":"ada"},"items":{"data":[{"price":{"id":"price_pro"},"current_period_end":\#(now + 86_400)}]}}}}"#
    }

    @Test(.enabled(if: packages != nil, "deploy/checks/subscriptions runs it"))
    func `what PyPI's stripe and app-store-server-library make and believe, we believe, and nothing else`()
        async throws
    {
        let python = try #require(Self.packages)
        let script = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../deploy/checks/subscriptions.py").path
        var place = URL(filePath: "/")
        try await with(root: { folder in
            place = folder
            try await Program.check(python, [script, "make", folder.path])
        }) { port, connection in
            let said = try await Program.check(
                python, [script, "send", place.path, "http://127.0.0.1:\(port)", Self.secret])
            print(said)
            #expect(
                try await connection.column(
                    "select store || ' ' || state || ' ' || plan from millrace.subscription order by 1")
                    == ["apple cancelled pro", "stripe cancelled pro"])
            #expect(try await connection.int("select count(*) from millrace.subscription_event") == 12)
        }
    }
}

extension CertificateChain {
    fileprivate func subscribed(appID: Int = 41) -> String {
        let now = Int(Date().timeIntervalSince1970) * 1000
        let transaction = sign(
            #"{"transactionId":"1","originalTransactionId":"1","bundleId":"com.example.app","environment":"Production","productId":"com.example.pro","appAccountToken":"bob","expiresDate":\#(now + 86_400_000)}"#
        )
        let renewal = sign(#"{"originalTransactionId":"1","autoRenewStatus":1}"#)
        return sign(
            #"{"notificationType":"SUBSCRIBED","notificationUUID":"u","signedDate":\#(now),"data":{"appAppleId":\#(appID),"bundleId":"com.example.app","environment":"Production","status":1,"signedTransactionInfo":"\#(transaction)","signedRenewalInfo":"\#(renewal)"}}"#
        )
    }
}
