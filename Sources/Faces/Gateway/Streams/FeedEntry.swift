import JSON
import Postgres

/// Whose an entry is: a person's, or a tenant's if it is no person's.
struct FeedOwner: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case person, tenant
    }

    var kind: Kind
    var name: String
}

/// One change of the feed, encoded once for all who get it.
struct FeedEntry: Sendable {
    let piece: StreamPiece
    let topic: String
    /// Persons, or a tenant. Without any it is nobody's, and nobody gets it.
    var owners: [FeedOwner]
    /// Of persons' entries: the tenant that they belong to as well.
    let tenant: String?
    let lesson: String?
    let ref: String
    /// It was written less than a minute before it was read.
    let isRecent: Bool

    var seq: Int64 { piece.id }

    init(
        seq: Int64, at: String, topic: String, owners: [FeedOwner], tenant: String? = nil, lesson: String?, ref: String,
        change: String, data: String, isRecent: Bool = true
    ) {
        self.isRecent = isRecent
        self.topic = topic
        self.owners = owners
        self.tenant = tenant
        self.lesson = lesson
        self.ref = ref
        piece = StreamPiece(id: seq, event: "change") { json in
            json += #"{"seq":\#(seq),"at":"#.utf8
            JSONText.appendQuoted(at, to: &json)
            for (name, value) in [("topic", topic), ("ref", ref), ("change", change)] {
                json += #","\#(name)":"#.utf8
                JSONText.appendQuoted(value, to: &json)
            }
            json += #","data":"#.utf8
            json += data.utf8
            json.append(UInt8(ascii: "}"))
        }
    }
}

/// What a reader wants of the entries that the database lets it see.
struct FeedFilter: Sendable {
    var person: String
    /// As the database finds it in the claims.
    var tenant: String?
    /// nil: all.
    var topics: [String]?
    /// Of one object, or of one lesson, alone.
    var ref: String?
    var lesson: String?

    /// As `millrace.feed_mine` decides, of an entry of one of the owners. `StreamRightsTests` compares them.
    func takes(_ entry: FeedEntry) -> Bool {
        (entry.tenant == nil || entry.tenant == tenant) && (topics?.contains(entry.topic) ?? true)
            && (ref.map { $0 == entry.ref } ?? true) && (lesson.map { $0 == entry.lesson } ?? true)
    }

    var owners: [FeedOwner] {
        [FeedOwner(kind: .person, name: person)] + (tenant.map { [FeedOwner(kind: .tenant, name: $0)] } ?? [])
    }
}
