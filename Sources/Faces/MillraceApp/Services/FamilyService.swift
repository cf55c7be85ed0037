public import Foundation

/// Families, and who is in them.
public protocol FamilyService: Sendable {
    /// Who creates a family is its first parent. False: it is theirs already.
    func create(_ family: String, zone: String) async throws -> Bool
    /// By a parent. Returns until when the invitation is good.
    func invite(_ person: String, to family: String, as role: FamilyRole) async throws -> Date
    /// Takes an invitation.
    func join(_ family: String, as role: FamilyRole) async throws -> Bool
    func leave(_ family: String) async throws -> Bool
    /// Those of the person who is signed in.
    func invitations() async throws -> [Invitation]
}

/// What somebody is in a family.
public enum FamilyRole: String, Sendable, Codable { case teen, parent }

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
