public import Foundation

/// Everything an app calls, for one person who is signed in.
///
/// `AppClient.live` talks to a gateway. `mock`, `test` and `preview` keep all in memory, for tests and previews of the app.
public struct AppClient: Sendable {
    /// The subject of the sign-in's tokens.
    public let person: String
    /// Uploads, their reading, and what came of it.
    public var documents: any DocumentService
    /// Thumbnails, and pictures without metadata.
    public var pictures: any PictureService
    /// Moods, streaks and the numbers of a week.
    public var moods: any MoodService
    /// Hobbies and flash cards.
    public var hobbies: any HobbyService
    /// The quest of the day, and points.
    public var quests: any QuestService
    /// Threads and messages.
    public var chat: any ChatService
    /// Lessons, and what happens to them.
    public var lessons: any LessonService
    /// Families and invitations.
    public var families: any FamilyService
    /// The watch of a person who checks in.
    public var checkIns: any CheckInClient
    /// Contacts, calls for help, and answers.
    public var emergency: any EmergencyClient
    /// Devices, preferences and own notices.
    public var notifications: any NotificationClient
    /// The profile, and its deletion.
    public var user: any UserClient
    /// What became of mails.
    public var mail: any MailStatusClient
    /// What has changed, as it happens.
    public var feed: any FeedClient
    /// Any function that apps may call: `call`, and the services that stand on it.
    public var doors: any DoorCaller
    /// What waits for the network; nil where nothing is queued.
    public var queue: OfflineQueue?

    /// - Parameters:
    ///   - person: the subject (`sub`) of the tokens that the configuration gives.
    ///   - directory: for what is done offline, one for each person, for example in Application Support. It is made where there is none.
    ///     Without one a call that cannot reach the gateway fails.
    ///   - deviceName: how the person knows this device in a list of devices.
    public static func live(
        _ configuration: AppConfiguration, person: String, offline directory: URL? = nil, deviceName: String? = nil
    ) async throws -> AppClient {
        let calls = AppCalls(configuration)
        guard let directory else { return live(calls, person, nil) }
        let queue = try await OfflineQueue(directory: directory, person: person, calls: calls, deviceName: deviceName)
        return live(calls, person, queue)
    }

    static func live(_ calls: AppCalls, _ person: String, _ queue: OfflineQueue?) -> AppClient {
        let context = LiveContext(calls: calls, person: person, queue: queue)
        return AppClient(
            person: person, documents: LiveDocuments(context: context), pictures: LivePictures(context: context),
            moods: LiveMoods(context: context),
            hobbies: LiveHobbies(context: context), quests: LiveQuests(context: context),
            chat: LiveChat(context: context), lessons: LiveLessons(context: context),
            families: LiveFamilies(context: context), checkIns: LiveCheckIns(context: context),
            emergency: LiveEmergency(context: context), notifications: LiveNotifications(context: context),
            user: LiveUser(context: context), mail: LiveMail(context: context), feed: LiveFeed(calls: calls),
            doors: context, queue: queue)
    }
}
