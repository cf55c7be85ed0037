import MillraceJobs
package import SettingsKit

extension Setting {
    package static let notices: [Setting] = [
        noticesOn, apnsKey, apnsKeyID, apnsTeam, apnsTopic, apnsURL, apnsCritical, fcmCredentials, fcmURL, smsURL,
        smsHeaders, smsBody,
    ]

    package static let noticesOn = Setting(
        "notices", .boolean, fallback: "on",
        help: "Send due notices (alarms, reminders) by push, mail, SMS and voice.")
    package static let apnsKey = Setting(
        "apns-key-file", .path, valueName: "FILE", help: "Apple's key for pushes: the .p8 file.")
    package static let apnsKeyID = Setting(
        "apns-key-id", .custom(expects: "an id of letters and digits", complaint: appleName), valueName: "ID",
        help: "The id of that key.")
    package static let apnsTeam = Setting(
        "apns-team", .custom(expects: "an id of letters and digits", complaint: appleName), valueName: "ID",
        help: "The team it belongs to.")
    package static let apnsTopic = Setting(
        "apns-topic",
        .custom(expects: "a bundle identifier such as com.example.app") { text in
            text.utf8.count <= 255
                && text.utf8.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "-") }
                ? nil : "takes a bundle identifier such as com.example.app"
        }, valueName: "BUNDLE", help: "The app that gets pushes, for devices that name no other.")
    package static let apnsURL = Setting(
        "apns-url", .custom(expects: "a URL such as https://api.push.apple.com", complaint: webComplaint),
        valueName: "URL", help: "The address of APNs; Apple's own, by the device's platform, if not given.")
    package static let apnsCritical = Setting(
        "apns-critical", .boolean, fallback: "off",
        help: "Let alarms sound on silenced devices, for apps that Apple allows to do so.")
    package static let fcmCredentials = Setting(
        "fcm-credentials-file", .path, valueName: "FILE", help: "Google's service account for pushes: the JSON file.")
    package static let fcmURL = Setting(
        "fcm-url", .custom(expects: "a URL such as https://fcm.googleapis.com", complaint: webComplaint),
        fallback: "https://fcm.googleapis.com", valueName: "URL", help: "The address of FCM.")
    package static let smsURL = Setting(
        "sms-url",
        .custom(expects: "a URL such as https://sms.example/send") { text in
            webComplaint(text.replacing("{{channel}}", with: "sms"))
        }, secrecy: .hidden, valueName: "URL",
        help: "The service that sends SMS and makes voice calls; {{channel}} in it is sms or voice.")
    package static let smsHeaders = Setting(
        "sms-headers-file", .path, valueName: "FILE",
        help: "Its headers, one on each line, such as Authorization: Bearer ….")
    package static let smsBody = Setting(
        "sms-body", .text,
        fallback: #"{"to":"{{to}}","text":"{{text}}","id":"{{id}}","channel":"{{channel}}"}"#, valueName: "TEXT",
        help: "The body of the request, with the places {{to}}, {{text}}, {{id}} and {{channel}}.")

    private static func appleName(_ text: String) -> String? {
        (1...32).contains(text.utf8.count) && text.utf8.allSatisfy(isLetterOrDigit)
            ? nil : "takes an id of letters and digits, such as ABC1234567"
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}
