import Postgres
import RoomKit
import Signatures
import Transfers

extension RoomContext {
    /// The service that tells people.
    func notices(sender: String?) throws -> NoticeService {
        var options = NoticeService.Options(database: database)
        options.hearing = hearing
        options.pool = pool
        options.app = sender ?? options.app
        options.locale = settings.string(.locale)
        options.links = settings.links
        options.phrases =
            NoticePhrases(pool: pool, defaultLocale: options.locale, log: log).phrases
        if let alarmLease { options.alarmLease = alarmLease }
        let client = HTTPClient()
        let providers: [(any NoticeProvider)?] = try [
            apns(client, Pool(database, size: 2)), fcm(client), texts(.sms, client), texts(.voice, client),
        ]
        return NoticeService(options, providers: providers.compactMap { $0 }, supervisor: supervisor, log: log)
    }

    private func apns(_ client: HTTPClient, _ pool: Pool) throws -> APNsProvider? {
        let names: [Setting] = [.apnsKey, .apnsKeyID, .apnsTeam, .apnsTopic]
        let values = names.map { settings.text($0) }
        guard values.contains(where: { $0 != nil }) else { return nil }
        for (name, value) in zip(names, values) where value == nil {
            throw Failure(.misused, "pushes by APNs need \(name.environment) too")
        }
        let bytes = try content(of: .apnsKey)
        let key: SigningKey
        do {
            key = try SigningKey(pem: bytes)
        } catch {
            throw Failure(.misused, "MILLRACE_APNS_KEY_FILE cannot be used: \(error)")
        }
        guard key.algorithm == .es256 else {
            throw Failure(.misused, "MILLRACE_APNS_KEY_FILE cannot be used: APNs takes a key of the curve P-256")
        }
        var configuration = APNsProvider.Configuration(
            key: key, keyBytes: bytes, keyID: settings.string(.apnsKeyID), team: settings.string(.apnsTeam),
            topic: settings.string(.apnsTopic))
        configuration.base = settings.text(.apnsURL)
        configuration.isCritical = settings.isOn(.apnsCritical)
        return try APNsProvider(configuration, client: client, pool: pool)
    }

    private func fcm(_ client: HTTPClient) throws -> FCMProvider? {
        guard settings.text(.fcmCredentials) != nil else { return nil }
        let credentials: GoogleCredentials
        do {
            credentials = try GoogleCredentials(json: try content(of: .fcmCredentials))
        } catch let error as SigningKey.Unusable {
            throw Failure(.misused, "MILLRACE_FCM_CREDENTIALS_FILE cannot be used: \(error)")
        }
        var configuration = FCMProvider.Configuration(credentials: credentials)
        configuration.base = settings.string(.fcmURL)
        return FCMProvider(configuration, client: client)
    }

    private func texts(_ channel: Sending.Channel, _ client: HTTPClient) throws -> TextProvider? {
        guard let url = settings.text(.smsURL) else { return nil }
        var configuration = TextProvider.Configuration(url: url)
        configuration.body = settings.string(.smsBody)
        if settings.text(.smsHeaders) != nil {
            let text = String(decoding: try content(of: .smsHeaders), as: UTF8.self)
            for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
                let line = line.hasSuffix("\r") ? line.dropLast() : line
                guard !line.isEmpty else { continue }
                guard let colon = line.firstIndex(of: ":"), colon > line.startIndex else {
                    throw Failure(.misused, "line \(number + 1) of MILLRACE_SMS_HEADERS_FILE is not a header")
                }
                configuration.headers.append(
                    (String(line[..<colon]), String(line[line.index(after: colon)...].drop { $0 == " " })))
            }
        }
        return TextProvider(channel, configuration, client: client)
    }

    private func content(of setting: Setting) throws -> [UInt8] {
        let path = settings.string(setting)
        do throws(FileProblem) {
            return try surroundings.read(path, 65_536)
        } catch {
            throw Failure(
                .misused,
                "\(setting.environment) names a file that cannot be read: \(Secrets.quoted(path)): \(error.complaint)")
        }
    }
}
