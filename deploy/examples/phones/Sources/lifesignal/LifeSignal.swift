import Foundation
import MillraceApp
import Phones

/// Somebody who lives alone, Lena, and her contact Omar, with a phone each.
///
/// A check-in is missed while the gateway and the worker are dead; a call for help is made without a network; an answer
/// to it is given while they are killed again. Omar's phone hears each alarm once, with its words. Then both get a new
/// phone. deploy/examples/phones/run lifesignal runs it.
@main struct LifeSignal {
    let world: World
    var lena: Phone
    var omar: Phone

    static func main() async {
        await play {
            let world = try World()
            let (lena, omar) = (try await world.phone("lena", "phone"), try await world.phone("omar", "phone"))
            var app = LifeSignal(world: world, lena: lena, omar: omar)
            try await app.agree()
            // Both streams stay open to the end, whatever happens to the gateway.
            let hers = await Heard.of(app.lena.app.alarms.stream())
            let his = await Heard.of(app.omar.app.alarms.stream())
            try await his.first("the stream") { $0.isEmpty }
            try await hers.first("the stream") { $0.isEmpty }
            let first = try await app.miss(hers, his)
            let second = try await app.callForHelp(hers, his)
            try await app.tellAgain()
            let alarms = Set(try await his.values().flatMap { $0.map(\.id) })
            try expectSame("Omar's phone has heard of two alarms", alarms, [first, second])
            try await app.install()
        }
    }

    /// Omar is named, and agrees in the app. Then Lena arms her watch.
    func agree() async throws {
        for (phone, name) in [(lena, "Lena"), (omar, "Omar")] {
            try await phone.queue.register()
            let change = ProfileChange(displayName: name, locale: "en", zone: "Europe/London")
            _ = try done("the profile", try await phone.app.profile.change(change))
        }
        let requests = await Heard.of(omar.app.watch.requestStream())
        let watched = await Heard.of(omar.app.watch.stream())
        let contacts = await Heard.of(lena.app.contacts.stream())
        // Before anybody has agreed she may check in; nothing waits for the next one.
        _ = try done("the check-in", try await lena.app.checkIns.checkIn())
        try expect("with nobody to tell, her watch is", try await lena.app.checkIns.state()?.state, "disarmed")
        _ = try done("naming", try await lena.app.emergency.setContact(EmergencyContact("omar", push: true)))
        _ = try done(
            "sharing", try await lena.app.contacts.describe("omar", name: "Omar from next door", shares: .times))
        let request = try await requests.first("the request") { !$0.isEmpty }
        try expect("Omar's phone shows a request of", request.map(\.name), ["Lena"])
        try expect("he accepts", try done("accepting", try await omar.app.watch.accept("lena")), 1)
        let agreed = try await contacts.first("the agreement") { $0.first?.channels?.first?.consent == "given" }
        try expect("Lena's phone shows that he has", agreed.map(\.name), ["Omar from next door"])
        try await armed(watched)
    }

    private func armed(_ watched: Heard<[Watched]>) async throws {
        let settings = WatchSettings(every: .seconds(3600), warnings: [], zone: "Europe/London")
        _ = try done("arming", try await lena.app.checkIns.arm(settings))
        let seen = try await watched.first("the watch") { $0.first?.state == "armed" }
        try expect("Omar's phone shows that her watch is", seen.first?.state, "armed")
        let due = try done("the check-in", try await lena.app.checkIns.checkIn())
        let shown = try await omar.app.watch.watched().people.first?.checkInExpiration
        try expect("she checks in, and he sees until when", shown.map { abs($0.timeIntervalSince(due)) < 0.001 }, true)
    }

    /// A check-in is missed, and nobody is there to notice: the gateway and the worker are killed at that moment.
    func miss(_ hers: Heard<[EmergencyAlarm]>, _ his: Heard<[EmergencyAlarm]>) async throws -> UUID {
        try await Operator.makeDue("lena")
        try await Operator.kill()
        say("her check-in is due, and at that moment the gateway and the worker are killed")
        try await Operator.start()
        let open = try await his.first("the alarm") { !$0.isEmpty }
        guard let alarm = open.first else { throw Wrong("there is no alarm") }
        try expect("Omar's phone has an alarm", [alarm.person, alarm.cause, alarm.state], ["lena", "expired", "open"])
        try expect("which says", alarm.title, "Lena has not checked in")
        try expectSame("and more: \(alarm.body ?? "")", alarm.body?.contains("should have checked in by"), true)
        let state = try done("the answer", try await omar.app.emergency.respond(to: alarm.id, .onMyWay))
        try expect("he is on his way; the alarm is", state, "acknowledged")
        let answered = try await hers.first("the answer") { $0.first?.answers?.isEmpty == false }
        try expect("Lena's phone shows his answer", answered.first?.answers?.map(\.answer), ["on_my_way"])
        try expect("by", answered.first?.answers?.map(\.contact), ["omar"])
        try await safe(alarm.id, his)
        _ = try done("the check-in", try await lena.app.checkIns.checkIn())
        try expect("she checks in; her watch is", try await lena.app.checkIns.state()?.state, "armed")
        return alarm.id
    }

    private func safe(_ alarm: UUID, _ his: Heard<[EmergencyAlarm]>) async throws {
        let state = try done("the answer", try await lena.app.emergency.respond(to: alarm, .safe))
        try expect("Lena is safe; the alarm is", state, "resolved")
        try await his.newest("the end of the alarm") { $0.isEmpty }
        say("ok    Omar's phone shows no alarm any more")
    }

    /// A call for help without a network: it waits on her phone, through a restart of the app, and is made later.
    mutating func callForHelp(
        _ hers: Heard<[EmergencyAlarm]>, _ his: Heard<[EmergencyAlarm]>
    ) async throws -> UUID {
        try await Operator.kill()
        let place = CheckInPlace(latitude: 51.5072, longitude: -0.1276, accuracy: 15, at: Date())
        try queued("a check-in", try await lena.app.checkIns.checkIn(place: place))
        try queued("the call", try await lena.app.emergency.help(note: "I fell on the stairs", place: place))
        lena = try await lena.restarted(copy: "copy")
        try expect(
            "on Lena's phone wait, also after a restart", await lena.queue.pending.map(\.op),
            ["check_in", "check_in_help"])
        try await Operator.start()
        try expect("they are told", try await lena.tell().map(\.word), [.applied, .applied])
        let open = try await his.first("the call") { $0.first?.cause == "help" }
        guard let alarm = open.first else { throw Wrong("there is no alarm") }
        try expect("Omar's phone has one alarm", [alarm.person, alarm.state], ["lena", "open"])
        try expect("which says", alarm.title, "Lena asks for help")
        try expectSame("and more: \(alarm.body ?? "")", alarm.body?.contains("“I fell on the stairs”"), true)
        try expect("and where she is", [alarm.place?.latitude, alarm.place?.longitude], [51.5072, -0.1276])

        // His answer meets a gateway that is just being killed: it arrives now or later.
        let killing = Task { try await Operator.kill() }
        let said = try await omar.app.emergency.respond(to: alarm.id, .onMyWay)
        try await killing.value
        say("Omar answers while they are killed again: his answer \(said.isQueued ? "waits" : "has arrived")")
        omar = try await omar.restarted(copy: "copy")
        try await Operator.start()
        _ = try await omar.tell()
        try await hers.first("the answer") { $0.first?.id == alarm.id && $0.first?.state == "acknowledged" }
        let answers = try await lena.app.alarms.show(alarm.id).answers ?? []
        let shown = answers.map { "\($0.contact) \($0.answer)" }
        try expect("Lena's phone shows his answer once", shown, ["omar on_my_way"])
        try await safe(alarm.id, his)
        return alarm.id
    }

    /// As after a crash in which the phones forgot that they had told it: nobody is alarmed twice.
    func tellAgain() async throws {
        for phone in [lena, omar] {
            let before = try await Shown(phone.app)
            let copy = try await world.phone(phone.app.person, "copy")
            let words = try await copy.tell().map(\.word)
            await copy.queue.close()
            try expect("\(phone.app.person)'s operations, told again", words.allSatisfy { $0 == .same }, true)
            try expectSame("nothing has changed", try await Shown(phone.app), before)
        }
    }

    /// Two new phones, with nothing on them.
    func install() async throws {
        for phone in [lena, omar] {
            let person = phone.app.person
            let before = try await Shown(phone.app)
            let new = try await world.phone(person, "new phone")
            try await new.queue.register()
            let now = try await Shown(new.app)
            try expectSame("on a new phone \(person) has everything again", now, before)
            try expect("also the alarms of before", now.alarms.map(\.state), ["resolved", "resolved"])
        }
        let eve = try await world.phone("eve", "phone").app
        try expect("a stranger has no alarms", try await eve.alarms.list().alarms, [])
        try expect("and watches over nobody", try await eve.watch.watched().people, [])
        try await refused("being Lena's contact") { _ = try await eve.watch.accept("lena") }
    }
}

/// All that the app shows to a person.
struct Shown: Equatable {
    let profile: Profile
    let state: CheckInState?
    let contacts: [CheckInState.Contact]
    let watched: [Watched]
    let alarms: [EmergencyAlarm]

    init(_ app: AppClient) async throws {
        profile = try await app.profile.mine()
        state = try await app.checkIns.state()
        contacts = try await app.contacts.list()
        watched = try await app.watch.watched().people
        alarms = try await app.alarms.list().alarms
    }
}
