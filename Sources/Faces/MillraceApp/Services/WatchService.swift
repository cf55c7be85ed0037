public import Foundation

/// The contact's side of check-ins: whom the person watches over, and who asks it to.
public struct WatchService: Sendable {
    private let doors: any DoorCaller

    /// On what calls functions.
    public init(_ doors: any DoorCaller) { self.doors = doors }

    /// Whom the person watches over, by their ids. `after` is what the last page said as `next`.
    public func watched(after person: String? = nil) async throws -> WatchedPage {
        try await page("given", after: person)
    }

    /// Who has asked the person, and waits for an answer.
    public func requests(after person: String? = nil) async throws -> WatchedPage {
        try await page("asked", after: person)
    }

    private func page(_ consent: String, after person: String?) async throws -> WatchedPage {
        try await doors.ask("check_in_watched", ["consent": .string(consent), "after": AppValue(person)])
    }

    /// Agrees to be told of this person's alarms. Returns how many of the addresses count now.
    public func accept(_ person: String) async throws -> Submission<Int> { try await answer(person, true) }

    /// Does not agree, or not any more.
    public func decline(_ person: String) async throws -> Submission<Int> { try await answer(person, false) }

    private func answer(_ person: String, _ agrees: Bool) async throws -> Submission<Int> {
        try await doors.later("check_in_accept", ["person": .string(person), "agrees": .bool(agrees)])
    }

    /// The first page of whom the person watches over, now and after each change of what they share.
    public func stream() -> AsyncThrowingStream<[Watched], any Error> {
        doors.following(.checkIns) { try await watched().people }
    }

    /// The first page of requests, now and after each change.
    public func requestStream() -> AsyncThrowingStream<[Watched], any Error> {
        doors.following(.checkIns) { try await requests().people }
    }
}

/// Up to fifty people.
public struct WatchedPage: Sendable, Hashable, Decodable {
    /// By their ids.
    public let people: [Watched]
    /// Behind whom the next page begins; nil: this is the last.
    public let next: String?

    /// For doubles of your own.
    public init(people: [Watched], next: String? = nil) { (self.people, self.next) = (people, next) }
}

/// Somebody who has named the person as a contact. What it shares is what it has said of this contact: nothing, its state, or its times too.
public struct Watched: Sendable, Hashable, Decodable {
    /// Who it is.
    public let person: String
    /// How it is called.
    public let name: String
    /// `asked`, `given` or `declined`.
    public let consent: String
    /// When it has asked.
    public let askedAt: Date?
    /// When the person has agreed.
    public let agreedAt: Date?
    /// Its picture.
    public let avatar: String?
    /// `nothing`, `state` or `times`.
    public let shares: String?
    /// Its open alarms that the person was told of.
    public let alarms: [UUID]?
    /// `armed`, `paused`, `expired` or `disarmed`.
    public let state: String?
    /// When it was last known to be well.
    public let lastCheckedIn: Date?
    /// When the next check-in is due.
    public let checkInExpiration: Date?
    /// Until when it is paused.
    public let pausedUntil: Date?

    /// For doubles of your own.
    public init(
        person: String, name: String, consent: String, askedAt: Date? = nil, agreedAt: Date? = nil,
        avatar: String? = nil, shares: String? = nil, alarms: [UUID]? = nil, state: String? = nil,
        lastCheckedIn: Date? = nil, checkInExpiration: Date? = nil, pausedUntil: Date? = nil
    ) {
        (self.person, self.name, self.consent, self.askedAt) = (person, name, consent, askedAt)
        (self.agreedAt, self.avatar, self.shares, self.alarms) = (agreedAt, avatar, shares, alarms)
        (self.state, self.lastCheckedIn) = (state, lastCheckedIn)
        (self.checkInExpiration, self.pausedUntil) = (checkInExpiration, pausedUntil)
    }
}

/// The person's own contacts. `emergency` names and removes them.
public struct ContactService: Sendable {
    private let doors: any DoorCaller

    /// On what calls functions.
    public init(_ doors: any DoorCaller) { self.doors = doors }

    /// In their turns.
    public func list() async throws -> [CheckInState.Contact] {
        let state: CheckInState? = try await doors.ask("check_in_show", ["person": doors.me])
        return state?.contacts ?? []
    }

    /// Now, and after each change: who was named, who has agreed.
    public func stream() -> AsyncThrowingStream<[CheckInState.Contact], any Error> {
        doors.following(.checkIns) { try await list() }
    }

    /// How the person calls a contact, its group, and what it sees of the watch. nil leaves a value as it is, and an empty text clears it.
    public func describe(
        _ contact: String, name: String? = nil, label: String? = nil, shares: ContactShare? = nil
    ) async throws -> Submission<Bool> {
        try await doors.later(
            "check_in_contact_details",
            [
                "person": doors.me, "contact": .string(contact), "name": AppValue(name), "label": AppValue(label),
                "shares": AppValue(shares?.rawValue),
            ])
    }

    /// Asks a contact again, where it has not answered. Returns how many of its addresses are asked.
    public func askAgain(_ contact: String) async throws -> Int {
        try await doors.act("check_in_consent_ask", ["person": doors.me, "contact": .string(contact)])
    }
}

/// What a contact sees of a watch before there is an alarm.
public enum ContactShare: String, Sendable, CaseIterable {
    /// Not even that there is a watch.
    case nothing
    /// Whether it is armed, paused, expired or disarmed.
    case state
    /// Also the last check-in, the interval, and when the next one is due.
    case times
}
