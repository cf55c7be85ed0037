import MillraceJobs
package import SettingsKit
import Signatures

extension Setting {
    package static let subscriptions: [Setting] = [
        stripeWebhookSecret, appStoreBundle, appStoreAppID, appStoreEnvironments, appStoreRootFiles,
    ]

    package static let stripeWebhookSecret = Setting(
        "stripe-webhook-secret", environment: "STRIPE_WEBHOOK_SECRET",
        .custom(expects: "whsec_… as Stripe shows it") { text in
            StripeSignature.Secret.list(text) == nil
                ? "takes whsec_… as Stripe shows it, several separated by spaces" : nil
        }, secrecy: .hidden, valueName: "SECRET",
        help: "The secret with which Stripe signs its webhooks: whsec_…; several while one is replaced.")
    package static let appStoreBundle = Setting(
        "app-store-bundle",
        .custom(expects: "a bundle id such as com.example.app") { text in
            text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f } && text.utf8.count <= 200
                ? nil : "takes a bundle id such as com.example.app"
        }, valueName: "ID", help: "The app whose subscriptions Apple's App Store tells of.")
    package static let appStoreAppID = Setting(
        "app-store-app-id", .integer(1...9_999_999_999), valueName: "NUMBER",
        help: "Apple's number of the app (appAppleId), which notifications of Production then have to name.")
    package static let appStoreEnvironments = Setting(
        "app-store-environments",
        .custom(expects: "Production, Sandbox or both") { text in
            let names = ListText.items(text)
            return !names.isEmpty && names.allSatisfy { ["Production", "Sandbox"].contains($0) }
                ? nil : "takes Production, Sandbox or both, separated by a comma"
        }, fallback: "Production", valueName: "NAMES",
        help: "Whose notifications count; those of Sandbox are of purchases that nobody has paid for.")
    package static let appStoreRootFiles = Setting(
        "app-store-root-files", .text, valueName: "FILES",
        help: "Apple's root certificate (AppleRootCA-G3.cer), in DER or PEM; several separated by commas.")
}

extension Settings {
    /// The stores whose messages a worker with these settings can check.
    package var storesHeard: [String] {
        (text(.stripeWebhookSecret) == nil ? [] : ["stripe"])
            + (text(.appStoreBundle) == nil || text(.appStoreRootFiles) == nil ? [] : ["apple"])
    }

    /// Apple's notifications of Production are told apart by the bundle alone.
    package var appStoreLacksAppID: Bool {
        storesHeard.contains("apple") && text(.appStoreAppID) == nil
            && ListText.items(string(.appStoreEnvironments)).contains("Production")
    }
}
