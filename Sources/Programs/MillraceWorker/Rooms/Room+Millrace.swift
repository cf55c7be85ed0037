import Composition
public import RoomKit

extension Room {
    /// Every room of Millrace's, to add yours: `CompleteWorker(rooms: Room.allOfMillrace.union([.shelf]))`.
    public static let allOfMillrace = Set(Rooms.all)

    /// Sends mail.
    public static let mail = Rooms.named("mail")
    /// Reads documents; needs the programs that do, see `MILLRACE_CHILDREN`.
    public static let documents = Rooms.named("documents")
    /// Makes files as jobs: thumbnails, pictures without metadata, files of templates.
    public static let media = Rooms.named("media")
    /// Takes families over their midnights.
    public static let quests = Rooms.named("quests")
    /// Watches over check-ins.
    public static let checkIns = Rooms.named("checkins")
    /// Sends due notices.
    public static let notices = Rooms.named("notices")
    /// Tells webhooks of events.
    public static let webhooks = Rooms.named("webhooks")
    /// Hears what stores tell of subscriptions, and ends them by the clock.
    public static let subscriptions = Rooms.named("subscriptions")
    /// Asks language models.
    public static let ai = Rooms.named("ai")
    /// Stores contents by their hash, and gives links to them.
    public static let blobs = Rooms.named("blobs")
}
