import Encryption
import RoomKit

extension WebhookAdmin.State {
    func judged(keys: Keyring, knowsOrigin: Bool) -> Check.Result {
        guard targets > 0 else { return .ok("nobody is told of events by HTTP") }
        let missing = self.keys.filter { !keys.has($0) }
        if !missing.isEmpty {
            return .warning(
                "secrets of webhooks need keys that are not in this environment: \(missing.joined(separator: ", "))",
                advice: "add them to MILLRACE_ENCRYPTION_KEY, here and where workers run")
        }
        if unsealed > 0, !keys.keys.isEmpty {
            return .warning(
                "\(Humane.count(unsealed, "secret")) of webhooks are stored in the database unencrypted",
                advice: "a worker with MILLRACE_ENCRYPTION_KEY encrypts them within a minute: is one there?")
        }
        if !knowsOrigin {
            return .warning(
                "targets of webhooks are asked for their consent in the name of this machine",
                advice: "set MILLRACE_EVENT_SOURCE, or MILLRACE_PUBLIC_URL, to the same where all workers run")
        }
        return .ok("\(Humane.count(targets)) told of events")
    }
}
