/// What stands on any caller of functions, a gateway's or a double's.
extension AppClient {
    /// Questions to a language model.
    public var ai: AIClient { AIClient(doors) }
    /// The plan, what was bought, and quotas.
    public var subscriptions: SubscriptionService { SubscriptionService(doors) }
    /// Who the person is.
    public var profile: ProfileService { ProfileService(doors) }
    /// Whom the person watches over, and who asks it to.
    public var watch: WatchService { WatchService(doors) }
    /// The person's own contacts.
    public var contacts: ContactService { ContactService(doors) }
    /// Alarms, with their words, answers and places.
    public var alarms: AlarmService { AlarmService(doors) }
    /// Devices that may hand in what was done offline.
    public var devices: DeviceService { DeviceService(doors) }
    /// Switches that the app's operators set.
    public var flags: FlagService { FlagService(doors) }
    /// One notice that is not wanted.
    public var reminders: ReminderService { ReminderService(doors) }
    /// Jobs of the app's own, signals and events.
    public var jobs: JobService { JobService(doors) }
    /// Mail from the app, where it may send any.
    public var mailSender: MailSender { MailSender(doors) }
}
