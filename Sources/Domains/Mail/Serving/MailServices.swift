import BlobKit
import Blobs
import FoundationEssentials
import Listeners
import Postgres
import RoomKit
import Signatures
import Telemetry
import Transfers

extension Settings {
    /// Every service in the configuration, including the fallbacks.
    func mailProviders(pool: Pool) throws -> [any MailProvider] {
        let blobs = BlobSource.whereverTheyLie(self, pool: pool)
        let client = HTTPClient()
        return try Set([mailChoice.provider] + mailFallbackNames).sorted().compactMap { name in
            switch name {
            case "resend":
                guard let key = text(.resendKey) else { return nil }
                var configuration = ResendProvider.Configuration(key: key)
                configuration.base = string(.resendBaseURL)
                configuration.timeout = duration(.mailTimeout)
                return ResendProvider(configuration, client: client, blobs: blobs)
            case "smtp":
                guard let address = text(.mailSMTP).flatMap({ SMTPAddress($0) }) else { return nil }
                var configuration = address.configuration
                configuration.mostConnections = integer(.mailSessions)
                configuration.limits.total = duration(.mailTimeout)
                do {
                    return SMTPProvider(try MailTransport(configuration), blobs: blobs)
                } catch {
                    throw Failure(.misused, "MILLRACE_MAIL_SMTP_URL: \(error)")
                }
            case "supabase":
                guard let url = text(.supabaseURL),
                    let key = text(.supabaseServiceKey) ?? text(.supabaseAnonKey)
                else { return nil }
                return SupabaseProvider(SupabaseProvider.Configuration(url: url, key: key), client: client)
            default: return OutboxProvider(directory: outboxDirectory, blobs: blobs)
            }
        }
    }
}

extension BlobSource {
    /// Attachments that came with `mail_send` itself are in the database; others are in the configured blob storage.
    fileprivate static func whereverTheyLie(_ settings: Settings, pool: Pool) -> BlobSource {
        let database = BlobPlace.postgres.store(pool: pool)
        let place = BlobPlace(settings.string(.blobs)) ?? .postgres
        guard place != .postgres else { return BlobSource(database) }
        let other = settings.blobStore(pool: pool)
        return BlobSource { id, take in
            do {
                try await other.read(id, range: nil, take)
            } catch BlobError.notFound {
                try await database.read(id, range: nil, take)
            }
        }
    }
}

extension MailRoutes {
    /// Checks signatures with the secrets that are configured; a route without one does not exist.
    init(pool: Pool, settings: Settings, log: Log) throws {
        func check(_ setting: Setting) throws -> Check? {
            guard let text = settings.text(setting) else { return nil }
            let secrets: [Webhook.Secret]
            do {
                secrets = try Webhook.Secret.list(text)
            } catch {
                throw Failure(
                    .misused, "\(setting.environment) is not a secret: it takes whsec_… as the provider shows it")
            }
            return { body, headers in
                let signed = Webhook.Signed { name in headers.first { $0.name.lowercased() == name }?.value }
                return try? Webhook.verify(body, signed, with: secrets, at: .now)  // nil is the answer: not believed
            }
        }
        self.init(
            pool: pool, log: log, links: settings.mailOptions.links, resend: try check(.resendWebhookSecret),
            supabase: try check(.supabaseHookSecret))
        host = settings.pageHost
    }
}
