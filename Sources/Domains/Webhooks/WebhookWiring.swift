import Postgres
import RoomKit
import Supervision
import Transfers

extension RoomContext {
    /// The service that sends events to webhooks.
    func webhooks() -> WebhookService {
        var options = WebhookService.Options()
        options.keys = settings.keys
        options.poll = settings.poll
        return WebhookService(
            pool: Pool(database, size: 4), hearing: hearing, caller: settings.webhookCaller(supervisor),
            options: options, log: log)
    }
}

extension Settings {
    func webhookCaller(_ supervisor: Supervisor) -> WebhookClient {
        WebhookClient(
            client: HTTPClient(.strict(webhookHosts)), supervisor: supervisor, origin: webhookOrigin,
            knowsOrigin: knowsWebhookOrigin, timeout: webhookTimeout)
    }
}
