public import Foundation

/// Who the person is: read, changed, followed, and taken along.
public struct ProfileService: Sendable {
    private let doors: any DoorCaller

    /// On what calls functions.
    public init(_ doors: any DoorCaller) { self.doors = doors }

    /// The person who is signed in.
    public func mine() async throws -> Profile { try await doors.ask("person_show", ["person": doors.me]) }

    /// How a member of the family, or a contact, is called and looks.
    public func of(_ person: String) async throws -> PersonCard {
        try await doors.ask("person_show", ["person": .string(person)])
    }

    /// Now, and after each change, also of what was said of notices.
    public func stream() -> AsyncThrowingStream<Profile, any Error> {
        doors.following(.people) { try await mine() }
    }

    /// Each field by itself: nil leaves it as it is.
    public func change(_ change: ProfileChange) async throws -> Submission<Bool> {
        try await doors.later("person_profile", change.arguments.merging(["person": doors.me]) { own, _ in own })
    }

    /// Where to get the picture of somebody, for an hour; nil: there is none.
    public func picture(of person: String? = nil) async throws -> URL? {
        let link: String? = try await doors.ask("person_avatar_link", ["person": .string(person ?? doors.person)])
        return link.flatMap { URL(string: $0) }
    }

    /// All that is kept of the person, a page at a time: go on behind the `place` of the last row.
    public func export(after place: String? = nil) async throws -> [ExportRow] {
        try await doors.ask("person_export", ["person": doors.me, "after": AppValue(place)])
    }

    /// A link to all of it, files included, for an hour.
    public func exportLink() async throws -> URL { try await doors.act("person_export_link", ["person": doors.me]) }
}

/// The person who is signed in.
public struct Profile: Sendable, Hashable, Decodable {
    /// The subject of the sign-in's tokens.
    public let person: String
    /// What others see.
    public let displayName: String?
    /// `blob:` and a hash, or an `https` address; `picture(of:)` makes a link of it.
    public let avatar: String?
    /// The family that it is in.
    public let family: String?
    /// As what.
    public let role: FamilyRole?
    /// Such as `pt-BR`.
    public let locale: String?
    /// Such as `Europe/Berlin`.
    public let zone: String?
    /// The hour of the daily reminder; nil: the common one.
    public let reminderHour: Int?
    /// Which map links to places open: `geo`, `osm`, `apple` or `google`.
    public let map: String?
    /// What was said of notices; nil: nothing.
    public let notices: Notices?

    /// For doubles of your own.
    public init(
        person: String, displayName: String? = nil, avatar: String? = nil, family: String? = nil,
        role: FamilyRole? = nil, locale: String? = nil, zone: String? = nil, reminderHour: Int? = nil,
        map: String? = nil, notices: Notices? = nil
    ) {
        (self.person, self.displayName, self.avatar) = (person, displayName, avatar)
        (self.family, self.role, self.locale, self.zone) = (family, role, locale, zone)
        (self.reminderHour, self.map, self.notices) = (reminderHour, map, notices)
    }

    /// Preferences for notices.
    public struct Notices: Sendable, Hashable, Decodable {
        /// Where its hours count.
        public let zone: String
        /// Local times such as `22:00:00`.
        public let quietFrom: String
        /// When they end.
        public let quietTo: String
        /// As `NoticePreferences` has them: addresses, `push`, and by kind.
        public let channels: AppValue
        /// The language of texts.
        public let locale: String?

        /// For doubles of your own.
        public init(zone: String, quietFrom: String, quietTo: String, channels: AppValue, locale: String? = nil) {
            (self.zone, self.quietFrom, self.quietTo) = (zone, quietFrom, quietTo)
            (self.channels, self.locale) = (channels, locale)
        }
    }
}

/// Somebody whom the person knows.
public struct PersonCard: Sendable, Hashable, Decodable {
    /// Who it is.
    public let person: String
    /// What it is called.
    public let displayName: String?
    /// `picture(of:)` makes a link of it.
    public let avatar: String?

    /// For doubles of your own.
    public init(person: String, displayName: String? = nil, avatar: String? = nil) {
        (self.person, self.displayName, self.avatar) = (person, displayName, avatar)
    }
}

/// What is to be changed. nil leaves a value as it is, and an empty text clears it.
public struct ProfileChange: Sendable, Hashable {
    /// What others see.
    public var displayName: String?
    /// `blob:` and the hash of a picture of the person's own, or an `https` address.
    public var avatar: String?
    /// Such as `pt-BR`.
    public var locale: String?
    /// Such as `Europe/Berlin`.
    public var zone: String?
    /// 0 to 23; -1: the common one.
    public var reminderHour: Int?
    /// `geo`, `osm`, `apple` or `google`.
    public var map: String?

    /// From its parts.
    public init(
        displayName: String? = nil, avatar: String? = nil, locale: String? = nil, zone: String? = nil,
        reminderHour: Int? = nil, map: String? = nil
    ) {
        (self.displayName, self.avatar, self.locale) = (displayName, avatar, locale)
        (self.zone, self.reminderHour, self.map) = (zone, reminderHour, map)
    }

    var arguments: [String: AppValue] {
        [
            "display_name": AppValue(displayName), "avatar": AppValue(avatar), "locale": AppValue(locale),
            "zone": AppValue(zone), "reminder_hour": AppValue(reminderHour), "map": AppValue(map),
        ]
    }
}

/// Something that is kept of a person.
public struct ExportRow: Sendable, Hashable, Decodable {
    /// Where it stands: the next page begins behind it.
    public let place: String
    /// Of which room it is.
    public let room: String
    /// What it is.
    public let thing: String
    /// All of it.
    public let data: AppValue

    /// For doubles of your own.
    public init(place: String, room: String, thing: String, data: AppValue) {
        (self.place, self.room, self.thing, self.data) = (place, room, thing, data)
    }
}
