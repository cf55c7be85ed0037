import CommandKit

/// Families, contacts and watches by the rules alone: no clock, no database. Hours are counted from a midnight.
struct PeopleModel: Sendable {
    struct Membership: Sendable, Equatable {
        var family: String
        var role: String
    }

    struct Invitation: Sendable {
        var role: String
        var by: String?
        var expires: Int
        var isDeclined = false
    }

    /// Two names, in order.
    struct Place: Sendable, Hashable, Comparable {
        var family: String
        var person: String

        static func < (one: Place, other: Place) -> Bool {
            (one.family, one.person) < (other.family, other.person)
        }
    }

    struct Named: Sendable, Hashable, Comparable {
        var person: String
        var contact: String

        static func < (one: Named, other: Named) -> Bool {
            (one.person, one.contact) < (other.person, other.contact)
        }
    }

    struct Address: Sendable {
        var address: String
        var isVerified = false
        var isDeclined = false
        var isGiven: Bool { isVerified && !isDeclined }
    }

    enum Watch: Sendable, Equatable {
        case running(until: Int)  // in half hours
        case expired
        case disarmed
    }

    struct Alarm: Sendable {
        var cause: String
        var isOpen = true
    }

    struct Asked: Sendable {
        var times = 0
        var at = -1000
    }

    var hour = 0
    var families: Set<String> = []
    var members: [String: Membership] = [:]
    var invitations: [Place: Invitation] = [:]
    var contacts: [Named: [String: Address]] = [:]
    var watches: [String: Watch] = [:]
    /// The last of each person.
    var alarms: [String: Alarm] = [:]
    var asked: [Named: Asked] = [:]
    var askedToday: [String: Int] = [:]
    var never: Set<String> = []

    /// Whether the step is allowed; if so, the model has changed.
    mutating func apply(_ step: PeopleStep) -> Bool {
        let me = step.actor
        switch step.act {
        case .create(let family): return create(family, by: me)
        case .join(let family, let person, let role): return join(family, person, role, by: me)
        case .invite(let family, let person, let role): return invite(family, person, role, by: me)
        case .uninvite(let family, let person): return uninvite(family, person, by: me)
        case .leave(let family, let person): return leave(family, person, by: me)
        case .erase(let person):
            guard me == nil || me == person else { return false }
            erase(person)
            return true
        case .look(let sight, let person): return me.map { sees($0, person, sight) } ?? false
        case .name(let person, let contact, let channels):
            return me == person && name(person, contact, channels)
        case .remove(let person, let contact): return me == person && remove(Named(person: person, contact: contact))
        case .ask(let person, let contact):
            guard me == person else { return false }
            ask(Named(person: person, contact: contact))
            return true
        case .link(let person, let contact, let channel, let answer):
            return link(Named(person: person, contact: contact), channel, answer)
        case .accept(let person, let agrees): return me.map { accept(person, by: $0, agrees) } ?? false
        case .arm(let person): return me == person && arm(person)
        case .checkIn(let person): return me == person && checkIn(person)
        case .disarm(let person):
            guard me == person, watches[person] != nil else { return false }
            watches[person] = .disarmed
            return true
        case .help(let person):
            guard me == person else { return false }
            alarms[person] = Alarm(cause: "help")
            return true
        case .respond(let person, let contact, let answer):
            return me == contact && respond(Named(person: person, contact: contact), answer)
        case .wait(let hours):
            wait(hours)
            return true
        }
    }

    // MARK: families

    func isParent(_ person: String?, of family: String) -> Bool {
        guard let person else { return true }  // a back end acts for the app
        return members[person] == Membership(family: family, role: "parent")
    }

    private func open(_ place: Place) -> Invitation? {
        invitations[place].flatMap { $0.expires > hour ? $0 : nil }
    }

    private mutating func create(_ family: String, by me: String?) -> Bool {
        if let me, let mine = members[me] {
            return mine.family == family
        }
        guard families.insert(family).inserted else { return me == nil }
        if let me { members[me] = Membership(family: family, role: "parent") }
        return true
    }

    private mutating func put(_ person: String, _ family: String, _ role: String) -> Bool {
        if let old = members[person], old.family != family { return false }
        members[person] = Membership(family: family, role: role)
        if role != "parent" { invitations = invitations.filter { $0.value.by != person } }
        invitations[Place(family: family, person: person)] = nil
        return true
    }

    private mutating func join(_ family: String, _ person: String, _ role: String, by me: String?) -> Bool {
        guard let me else { return families.contains(family) && put(person, family, role) }
        guard me == person else { return invite(family, person, role, by: me) }
        let invitation = open(Place(family: family, person: me))
        let mine = members[me].flatMap { $0.family == family ? $0 : nil }
        if mine?.role == role { return true }
        if mine?.role == "parent" { return put(me, family, "teen") }
        guard let invitation, invitation.role == role || mine != nil else { return false }
        return put(me, family, invitation.role)
    }

    private mutating func invite(_ family: String, _ person: String, _ role: String, by me: String?) -> Bool {
        guard families.contains(family), isParent(me, of: family), me != person else { return false }
        if members[person] == Membership(family: family, role: role) { return true }
        let place = Place(family: family, person: person)
        if open(place)?.isDeclined == true { return false }
        invitations[place] = Invitation(role: role, by: me, expires: hour + 14 * 24)
        return true
    }

    private mutating func uninvite(_ family: String, _ person: String, by me: String?) -> Bool {
        let place = Place(family: family, person: person)
        if me == person {
            if open(place) != nil { invitations[place]?.isDeclined = true }
            return true
        }
        guard families.contains(family), isParent(me, of: family) else { return false }
        if open(place)?.isDeclined == false { invitations[place] = nil }
        return true
    }

    private mutating func leave(_ family: String, _ person: String, by me: String?) -> Bool {
        let theirs = members[person].flatMap { $0.family == family ? $0 : nil }
        if me != person {
            guard families.contains(family), isParent(me, of: family) else { return false }
            if me != nil, theirs?.role == "parent" { return false }
        }
        guard theirs != nil else { return true }
        members[person] = nil
        invitations = invitations.filter { $0.key.family != family || $0.value.by != person }
        return true
    }

    private mutating func erase(_ person: String) {
        members[person] = nil
        invitations = invitations.filter { $0.key.person != person && $0.value.by != person }
        contacts = contacts.filter { $0.key.person != person && $0.key.contact != person }
        watches[person] = nil
        alarms[person] = nil
    }

    private func sees(_ me: String, _ person: String, _ sight: PeopleSight) -> Bool {
        if me == person { return true }
        guard let mine = members[me], mine.family == members[person]?.family else { return false }
        switch sight {
        case .points, .weekly_stats, .quest_history: return mine.role == "parent"
        case .moods: return true
        case .check_in_show: return false
        }
    }

    // MARK: contacts

    /// The form in which consent counts an address: by mailbox, number, person.
    static func key(_ channel: String, _ address: String) -> String {
        switch channel {
        case "mail":
            let parts = address.split(separator: "@")
            return "mail:\(parts[0].split(separator: "+")[0])@\(parts[1])"
        case "push": return "person:\(address)"
        default: return "tel:\(address)"
        }
    }

    func isReached(_ person: String) -> Bool {
        contacts.contains { $0.key.person == person && $0.value.values.contains { $0.isGiven } }
    }

    private func isWatched(_ person: String) -> Bool {
        switch watches[person] {
        case .running, .expired: true
        case .disarmed, nil: false
        }
    }

    private mutating func name(_ person: String, _ contact: String, _ channels: [String: String]) -> Bool {
        guard contact != person else { return false }
        let before = self
        let named = Named(person: person, contact: contact)
        var addresses = (contacts[named] ?? [:]).filter { channels[$0.key] == $0.value.address }
        for (channel, address) in channels where addresses[channel] == nil {
            addresses[channel] = Address(address: address, isDeclined: never.contains(Self.key(channel, address)))
        }
        contacts[named] = addresses
        if before.isReached(person), !isReached(person), isWatched(person) {
            self = before
            return false
        }
        ask(named)
        return true
    }

    private mutating func remove(_ named: Named) -> Bool {
        guard let old = contacts.removeValue(forKey: named) else { return true }
        guard isReached(named.person) || !isWatched(named.person) else {
            contacts[named] = old
            return false
        }
        return true
    }

    private mutating func ask(_ named: Named) {
        for (channel, address) in (contacts[named] ?? [:]).sorted(by: { $0.key < $1.key })
        where !address.isVerified && !address.isDeclined {
            let key = Self.key(channel, address.address)
            let pair = Named(person: named.person, contact: key)
            let asker = "asker \(named.person) \(hour / 24)"
            let asked = "address \(key) \(hour / 24)"
            guard !never.contains(key), self.asked[pair]?.times ?? 0 < 5, self.asked[pair]?.at ?? -1000 <= hour - 24,
                askedToday[asker] ?? 0 < 10, askedToday[asked] ?? 0 < 3
            else { continue }
            self.asked[pair, default: Asked()].times += 1
            self.asked[pair]?.at = hour
            askedToday[asker, default: 0] += 1
            askedToday[asked, default: 0] += 1
        }
    }

    private mutating func answer(_ named: Named, _ channels: [String], _ agrees: Bool) {
        for channel in channels {
            contacts[named]?[channel]?.isVerified = agrees
            contacts[named]?[channel]?.isDeclined = !agrees
        }
    }

    private mutating func link(_ named: Named, _ channel: String, _ answer: String) -> Bool {
        guard let addresses = contacts[named], let address = addresses[channel] else { return false }
        let key = Self.key(channel, address.address)
        if answer == "never" {
            never.insert(key)
            for (other, addresses) in contacts {
                self.answer(
                    other, addresses.filter { Self.key($0.key, $0.value.address) == key }.map(\.key), false)
            }
            return true
        }
        if answer == "yes", never.contains(key) { return false }
        self.answer(named, addresses.filter { Self.key($0.key, $0.value.address) == key }.map(\.key), answer == "yes")
        return true
    }

    private mutating func accept(_ person: String, by me: String, _ agrees: Bool) -> Bool {
        let named = Named(person: person, contact: me)
        let channels = (contacts[named] ?? [:]).keys.filter { $0 == "push" || !agrees }
        guard !channels.isEmpty, !agrees || !never.contains("person:\(me)") else { return false }
        answer(named, channels, agrees)
        return true
    }

    // MARK: watches

    private mutating func arm(_ person: String) -> Bool {
        guard isReached(person) else { return false }
        if watches[person] == .expired { late(person) }
        watches[person] = .running(until: hour * 2 + 3)
        return true
    }

    private mutating func checkIn(_ person: String) -> Bool {
        guard let watch = watches[person], watch != .disarmed else {
            // Where somebody could be told, nobody is to believe to be watched.
            guard !isReached(person) else { return false }
            watches[person] = .disarmed
            return true
        }
        if watch == .expired { late(person) }
        watches[person] = .running(until: hour * 2 + 3)
        return true
    }

    private mutating func late(_ person: String) {
        if alarms[person]?.cause == "expired" { alarms[person]?.isOpen = false }
    }

    private mutating func respond(_ named: Named, _ answer: String) -> Bool {
        let isContact = (contacts[named] ?? [:]).values.contains { $0.isGiven }
        guard let alarm = alarms[named.person], isContact || named.contact == named.person else { return false }
        guard alarm.isOpen else { return true }
        if named.contact == named.person, answer != "safe" { return false }
        if answer == "safe" { alarms[named.person]?.isOpen = false }
        return true
    }

    private mutating func wait(_ hours: Int) {
        hour += hours
        for (person, watch) in watches {
            guard case .running(let until) = watch, until <= hour * 2 else { continue }
            watches[person] = .expired
            if alarms[person]?.isOpen != true { alarms[person] = Alarm(cause: "expired") }
        }
    }
}
