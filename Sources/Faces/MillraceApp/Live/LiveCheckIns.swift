import Foundation

struct LiveCheckIns: CheckInClient {
    let context: LiveContext
    private var me: AppValue { .string(context.person) }

    func checkIn(at: Date, place: CheckInPlace?) async throws -> Submission<Date> {
        var given = ["person": me]
        if let place { given["place"] = place.value }
        return try await context.submit("check_in", given, at: at)
    }

    func arm(_ watch: WatchSettings) async throws -> Submission<Date> {
        try await context.submit(
            "check_in_arm",
            [
                "person": me, "every": AppValue(watch.every), "grace": AppValue(watch.grace),
                "warnings": .array(watch.warnings.map { AppValue($0) }), "zone": .string(watch.zone),
            ])
    }

    func setInterval(_ interval: Duration) async throws -> Submission<Date?> {
        try await context.submit("check_in_set_interval", ["person": me, "every": AppValue(interval)])
    }

    func pause(until: Date) async throws -> Submission<Date> {
        try await context.submit("check_in_pause", ["person": me, "until": AppValue(until)])
    }

    func disarm(reason: String?) async throws -> Submission<Bool> {
        try await context.submit("check_in_disarm", ["person": me, "reason": AppValue(reason)])
    }

    func state() async throws -> CheckInState? { try await context.calls.ask("check_in_show", ["person": me]) }
}

struct LiveEmergency: EmergencyClient {
    let context: LiveContext
    private var me: AppValue { .string(context.person) }

    func setContact(_ contact: EmergencyContact) async throws -> Submission<Int> {
        var channels: [String: AppValue] = [:]
        if let mail = contact.mail { channels["mail"] = .string(mail) }
        if let sms = contact.sms { channels["sms"] = .string(sms) }
        if let voice = contact.voice { channels["voice"] = .string(voice) }
        if contact.push { channels["push"] = true }
        return try await context.submit(
            "check_in_contact",
            [
                "person": me, "contact": .string(contact.name), "step": AppValue(contact.step),
                "channels": .object(channels), "wait": AppValue(contact.wait),
            ])
    }

    func removeContact(_ contact: String) async throws -> Submission<Bool> {
        try await context.submit("check_in_contact_remove", ["person": me, "contact": .string(contact)])
    }

    func accept(_ person: String, agrees: Bool) async throws -> Submission<Int> {
        try await context.submit("check_in_accept", ["person": .string(person), "agrees": .bool(agrees)])
    }

    func help(note: String?, place: CheckInPlace?) async throws -> Submission<HelpAnswer> {
        var given = ["person": me, "note": AppValue(note)]
        if let place { given["place"] = place.value }
        return try await context.submit("check_in_help", given)
    }

    func respond(to alarm: UUID, _ answer: AlarmAnswer) async throws -> Submission<String> {
        try await context.submit(
            "check_in_respond", ["alarm": AppValue(alarm), "contact": me, "answer": .string(answer.rawValue)])
    }

    func drill() async throws -> UUID { try await context.calls.act("check_in_drill", ["person": me]) }

    func alarmChanges() -> AsyncThrowingStream<FeedChange, any Error> { context.events(.alarms).changes }
}

struct LiveNotifications: NotificationClient {
    let context: LiveContext
    private var me: AppValue { .string(context.person) }

    func addDevice(_ token: String, _ platform: PushPlatform, app: String?) async throws -> Submission<Bool> {
        try await context.submit(
            "device_add",
            ["person": me, "platform": .string(platform.rawValue), "token": .string(token), "app": AppValue(app)])
    }

    func removeDevice(_ token: String) async throws -> Submission<Bool> {
        try await context.submit("device_remove", ["token": .string(token)])
    }

    func setPreferences(_ preferences: NoticePreferences) async throws -> Submission<Bool> {
        var channels: [String: AppValue] = ["push": .bool(preferences.push)]
        if let mail = preferences.mail { channels["mail"] = .string(mail) }
        if let sms = preferences.sms { channels["sms"] = .string(sms) }
        if !preferences.kinds.isEmpty { channels["kinds"] = .object(preferences.kinds.mapValues { AppValue($0) }) }
        return try await context.submit(
            "notice_preferences",
            [
                "person": me, "zone": .string(preferences.zone), "quiet_from": .string(preferences.quietFrom),
                "quiet_to": .string(preferences.quietTo), "channels": .object(channels),
                "locale": .string(
                    preferences.locale ?? Locale.current.identifier.replacingOccurrences(of: "_", with: "-")),
            ])
    }

    func schedule(_ notice: OwnNotice) async throws -> Submission<UUID> {
        var data: [String: AppValue] = [:]
        if let title = notice.title { data["title"] = .string(title) }
        if let body = notice.body { data["body"] = .string(body) }
        if let url = notice.url { data["url"] = .string(url.absoluteString) }
        return try await context.submit(
            "own_notice_schedule",
            [
                "person": me, "kind": .string(notice.kind), "key": .string(notice.key), "at": AppValue(notice.at),
                "data": .object(data),
            ])
    }

    func move(_ key: String, to at: Date) async throws -> Submission<Bool> {
        try await context.submit("own_notice_move", ["person": me, "key": .string(key), "at": AppValue(at)])
    }

    func cancel(_ key: String) async throws -> Submission<Bool> {
        try await context.submit("own_notice_cancel", ["person": me, "key": .string(key)])
    }

    func scheduleDailyReminder(atHour hour: Int?) async throws -> Submission<Bool> {
        try await context.submit("person_profile", ["person": me, "reminder_hour": AppValue(hour ?? -1)])
    }
}

struct LiveUser: UserClient {
    let context: LiveContext

    func setProfile(displayName: String?, locale: String?, zone: String?) async throws -> Submission<Bool> {
        try await context.submit(
            "person_profile",
            [
                "person": .string(context.person), "display_name": AppValue(displayName),
                "locale": AppValue(locale), "zone": AppValue(zone),
            ])
    }

    func deleteAccount() async throws {
        let _: AppValue = try await context.calls.act("person_erase", ["person": .string(context.person)])
    }
}

struct LiveMail: MailStatusClient {
    let context: LiveContext

    func status(of id: UUID) async throws -> MailProgress {
        let found: [MailProgress] = try await context.calls.ask("mail_message", ["id": AppValue(id)])
        guard let status = found.first else { throw AppError(.not_found, "there is no mail \(id)", field: "id") }
        return status
    }

    func streamStatus(of id: UUID) -> AsyncThrowingStream<MailProgress, any Error> {
        context.events(.mail).following {
            $0.ref == id.uuidString.lowercased()
        } read: {
            try await status(of: id)
        } isLast: {
            $0.isFinal
        }
    }

    func cancel(_ id: UUID) async throws -> Bool {
        try await context.calls.act("mail_cancel", ["id": AppValue(id)])
    }
}

extension MailProgress {
    /// It does not change any more.
    public var isFinal: Bool {
        !["scheduled", "queued", "sending", "accepted", "delayed", "parked"].contains(status)
    }
}
