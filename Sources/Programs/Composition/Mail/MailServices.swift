import Blobs
import FoundationEssentials
import Listeners
import Mail
package import MillraceMail
package import Postgres
import Signatures
package import Supervision
package import Telemetry
import Templates
import Transfers
import Workers

extension Composer {
    /// The mail room of a worker.
    package func mail(
        pool: Pool, hearing: NotificationHub? = nil, supervisor: Supervisor, files: TemplateFiles? = nil
    ) throws -> MailWiring {
        let store = TemplateStore(pool: pool, hearing: hearing, defaultLocale: settings.string(.locale)) { key, load in
            try await supervisor.read(key, load)
        }
        return MailWiring(
            providers: try providers(pool: pool), templates: store, files: files, settings: settings, pool: pool,
            supervisor: supervisor,
            log: log)
    }

    /// Every service in the configuration, including the fallbacks.
    private func providers(pool: Pool) throws -> [any MailProvider] {
        let blobs = BlobSource.whereverTheyLie(settings, pool: pool)
        let client = HTTPClient()
        return try Set([settings.mailChoice.provider] + settings.mailFallbackNames).sorted().compactMap { name in
            switch name {
            case "resend":
                guard let key = settings.text(.resendKey) else { return nil }
                var configuration = ResendProvider.Configuration(key: key)
                configuration.base = settings.string(.resendBaseURL)
                configuration.timeout = settings.duration(.mailTimeout)
                return ResendProvider(configuration, client: client, blobs: blobs)
            case "smtp":
                guard let address = settings.text(.mailSMTP).flatMap({ SMTPAddress($0) }) else { return nil }
                var configuration = address.configuration
                configuration.mostConnections = settings.integer(.mailSessions)
                configuration.limits.total = settings.duration(.mailTimeout)
                do {
                    return SMTPProvider(try MailTransport(configuration), blobs: blobs)
                } catch {
                    throw Failure(.misused, "MILLRACE_MAIL_SMTP_URL: \(error)")
                }
            case "supabase":
                guard let url = settings.text(.supabaseURL),
                    let key = settings.text(.supabaseServiceKey) ?? settings.text(.supabaseAnonKey)
                else { return nil }
                return SupabaseProvider(SupabaseProvider.Configuration(url: url, key: key), client: client)
            default: return OutboxProvider(directory: settings.outboxDirectory, blobs: blobs)
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
    package init(pool: Pool, settings: Settings, log: Log) throws {
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
    }
}
