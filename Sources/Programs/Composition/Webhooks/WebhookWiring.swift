package import Postgres
package import Supervision
import Transfers
package import Webhooks

extension Composer {
    /// The service that sends events to webhooks; nil when it is switched off.
    package func webhooks(pool: Pool, hearing: NotificationHub, supervisor: Supervisor) -> WebhookService? {
        guard settings.sendsWebhooks else { return nil }
        var options = WebhookService.Options()
        options.keys = settings.keys
        options.poll = settings.poll
        return WebhookService(
            pool: pool, hearing: hearing, caller: webhookCaller(supervisor), options: options, log: log)
    }

    package func webhookCaller(_ supervisor: Supervisor) -> WebhookClient {
        WebhookClient(
            client: HTTPClient(.strict(settings.webhookHosts)), supervisor: supervisor,
            origin: settings.webhookOrigin, knowsOrigin: settings.knowsWebhookOrigin, timeout: settings.webhookTimeout)
    }
}
