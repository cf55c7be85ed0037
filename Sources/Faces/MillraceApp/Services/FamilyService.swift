public import Foundation

/// Families, and who is in them.
public protocol FamilyService: Sendable {
    /// Who creates a family is its first parent. False: it is theirs already.
    func create(_ family: String, zone: String) async throws -> Bool
    /// By a parent. Returns until when the invitation is good.
    func invite(_ person: String, to family: String, as role: FamilyRole) async throws -> Date
    /// Takes an invitation.
    func join(_ family: String, as role: FamilyRole) async throws -> Bool
    /// Leaves it, oneself. False: one was not in it.
    func leave(_ family: String) async throws -> Bool
    /// Those of the person who is signed in.
    func invitations() async throws -> [Invitation]
    /// By a parent: who is invited.
    func invitations(to family: String) async throws -> [Invitation]
    /// Declines an invitation of one's own, or takes one back as a parent. False: there is none.
    func endInvitation(of person: String, to family: String) async throws -> Bool
    /// By a parent: its clock. False: it is there already.
    func move(_ family: String, to zone: String) async throws -> Bool
    /// The person's family with its members, and open invitations: all that an app needs after it was installed again.
    func mine() async throws -> MyFamily
    /// The same, now and after each change.
    func stream() -> AsyncThrowingStream<MyFamily, any Error>
}

/// The family of a person, and where it is invited to.
public struct MyFamily: Sendable, Hashable, Decodable {
    /// What changes it.
    static let topics: Set<FeedTopic> = [.quests, .people]

    /// Who it is.
    public let person: String
    /// nil: it is in none.
    public let family: String?
    /// As what.
    public let role: FamilyRole?
    /// Since when.
    public let joinedAt: Date?
    /// Where the family's days begin and end, such as `Europe/London`.
    public let zone: String?
    /// In the order in which they joined.
    public let members: [Member]
    /// For a parent: who is invited.
    public let invited: [Guest]
    /// Where the person is invited to.
    public let invitedTo: [Offer]

    /// For doubles of your own.
    public init(
        person: String, family: String? = nil, role: FamilyRole? = nil, joinedAt: Date? = nil, zone: String? = nil,
        members: [Member] = [], invited: [Guest] = [], invitedTo: [Offer] = []
    ) {
        (self.person, self.family, self.role, self.joinedAt) = (person, family, role, joinedAt)
        (self.zone, self.members, self.invited, self.invitedTo) = (zone, members, invited, invitedTo)
    }

    /// Somebody in the family.
    public struct Member: Sendable, Hashable, Decodable {
        /// Who.
        public let person: String
        /// As what.
        public let role: FamilyRole
        /// Since when.
        public let joinedAt: Date?
        /// How it is called.
        public let displayName: String?
        /// Its picture; `profile.picture(of:)` makes a link of it.
        public let avatar: String?

        /// For doubles of your own.
        public init(
            person: String, role: FamilyRole, joinedAt: Date? = nil, displayName: String? = nil, avatar: String? = nil
        ) {
            (self.person, self.role, self.joinedAt) = (person, role, joinedAt)
            (self.displayName, self.avatar) = (displayName, avatar)
        }
    }

    /// Somebody who is invited.
    public struct Guest: Sendable, Hashable, Decodable {
        /// Who.
        public let person: String
        /// As what.
        public let role: FamilyRole
        /// Until when.
        public let expiresAt: Date
        /// When the person said no.
        public let declinedAt: Date?

        /// For doubles of your own.
        public init(person: String, role: FamilyRole, expiresAt: Date, declinedAt: Date? = nil) {
            (self.person, self.role, self.expiresAt) = (person, role, expiresAt)
            self.declinedAt = declinedAt
        }
    }

    /// A family that the person is invited to.
    public struct Offer: Sendable, Hashable, Decodable {
        /// Which.
        public let family: String
        /// As what.
        public let role: FamilyRole
        /// By whom.
        public let invitedBy: String?
        /// How that person is called.
        public let invitedByName: String?
        /// Until when.
        public let expiresAt: Date
        /// When the person said no.
        public let declinedAt: Date?

        /// For doubles of your own.
        public init(
            family: String, role: FamilyRole, invitedBy: String? = nil, invitedByName: String? = nil,
            expiresAt: Date, declinedAt: Date? = nil
        ) {
            (self.family, self.role, self.invitedBy) = (family, role, invitedBy)
            (self.invitedByName, self.expiresAt, self.declinedAt) = (invitedByName, expiresAt, declinedAt)
        }
    }
}

/// What somebody is in a family.
public enum FamilyRole: String, Sendable, Codable {
    /// A child of the family.
    case teen
    /// Invites others, and may undo what is done for the family.
    case parent
}

/// An invitation to a family.
public struct Invitation: Sendable, Hashable, Decodable {
    /// Where to.
    public let family: String
    /// Who is invited.
    public let person: String
    /// As what.
    public let role: FamilyRole
    /// By whom.
    public let invitedBy: String?
    /// Until when it is good.
    public let expiresAt: Date

    /// For doubles of your own.
    public init(
        family: String, person: String, role: FamilyRole, invitedBy: String? = nil, expiresAt: Date
    ) {
        self.family = family
        self.person = person
        self.role = role
        self.invitedBy = invitedBy
        self.expiresAt = expiresAt
    }
}
