import MillraceJobs
import Postgres
import RoomKit
import Signatures
import Workers

extension RoomContext {
    /// The handler of `subscriptions.due`: ends and grace by the clock, and accounts after a plan has changed.
    func subscriptionHandler() -> Handler {
        Handler(
            kind: SubscriptionAdmin.kind, queue: SubscriptionAdmin.queue,
            retries: RetryPolicy(attempts: 20, base: .seconds(1), cap: .seconds(600))
        ) { args, _ in
            var next: [UInt8]? = args
            while let step = next {
                try Task.checkCancellation()
                next = try await pool.withConnection { connection throws(PostgresError) in
                    try await SubscriptionAdmin.step(step, on: connection)
                }
            }
            return .done
        }
    }

    func subscriptionRoutes() throws -> SubscriptionRoutes {
        var routes = SubscriptionRoutes(pool: pool, log: log)
        routes.stripe = settings.text(.stripeWebhookSecret).flatMap { StripeSignature.Secret.list($0) }
        routes.apple = try appStore()
        return routes
    }

    /// nil: not configured.
    private func appStore() throws -> AppStoreSignature? {
        let paths = ListText.items(settings.text(.appStoreRootFiles) ?? "")
        guard let bundle = settings.text(.appStoreBundle), !paths.isEmpty else { return nil }
        var files: [[UInt8]] = []
        for path in paths {
            do throws(FileProblem) {
                files.append(try surroundings.read(path, 65_536))
            } catch {
                throw Failure(
                    .misused,
                    "MILLRACE_APP_STORE_ROOT_FILES names a file that cannot be used: \(path): \(error.complaint)")
            }
        }
        do throws(CertificateRoots.Unusable) {
            return AppStoreSignature(
                roots: try CertificateRoots(files), bundle: bundle,
                environments: ListText.items(settings.string(.appStoreEnvironments)),
                appID: settings.text(.appStoreAppID) == nil ? nil : settings.integer(.appStoreAppID))
        } catch {
            throw Failure(.misused, "MILLRACE_APP_STORE_ROOT_FILES: \(error.description)")
        }
    }
}
