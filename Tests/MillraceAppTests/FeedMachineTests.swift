import Foundation
import Testing

@testable import MillraceApp

@Suite struct FeedMachineTests {
    private func machine(at position: Int64? = nil) -> FeedMachine {
        FeedMachine(position: position, rules: RetryRules())
    }

    private func change(_ seq: Int64) -> FeedEvent {
        .change(FeedChange(seq: seq, at: .distantPast, topic: "moods", ref: "r", change: "logged"))
    }

    @Test func `a reader goes on behind the last change that it gave, and gives none twice`() {
        var machine = machine()
        #expect(machine.next() == .stream(after: nil))
        #expect(machine.received(.ready(position: 10)) == .ready(position: 10))
        #expect(machine.received(change(11)) == change(11))
        #expect(machine.received(change(12)) == change(12))
        #expect(machine.received(change(12)) == nil)
        #expect(machine.received(change(11)) == nil)
        machine.ended(.cut, random: 1)
        #expect(machine.next() == .pause(.seconds(1)))
        #expect(machine.next() == .stream(after: 12))
    }

    @Test func `pauses double while nothing answers, and begin again after an answer`() {
        var machine = machine(at: 5)
        var pauses: [FeedMachine.Step] = []
        for _ in 0..<8 {
            #expect(machine.next() == .stream(after: 5))
            machine.ended(.failed(AppError(.unavailable, "")), random: 1)
            pauses.append(machine.next())
        }
        #expect(pauses == [1, 2, 4, 8, 16, 30, 30, 30].map { .pause(.seconds($0)) })
        #expect(machine.next() == .stream(after: 5))
        _ = machine.received(.ready(position: 5))
        machine.ended(.cut, random: 1)
        #expect(machine.next() == .pause(.seconds(1)))
    }

    @Test func `the server's own pause counts`() {
        var machine = machine()
        machine.told(.milliseconds(2000))
        machine.ended(.cut, random: 1)
        #expect(machine.next() == .pause(.seconds(2)))
        machine.ended(.failed(AppError(.throttled, "", retryAfter: .seconds(90))), random: 1)
        #expect(machine.next() == .pause(.seconds(90)))
    }

    @Test func `a stream that stays mute twice becomes polling, and is tried again later`() {
        var machine = machine(at: 3)
        machine.ended(.mute, random: 0)
        #expect(machine.next() == .pause(.milliseconds(500)))
        #expect(machine.next() == .stream(after: 3))
        machine.ended(.mute, random: 0)
        for poll in 0..<FeedMachine.pollsBetweenStreams {
            #expect(machine.next() == .poll(after: 3 + Int64(poll)))
            #expect(machine.beginsPolling() == (poll == 0))
            machine.polled(4 + Int64(poll))
        }
        #expect(machine.next() == .stream(after: 3 + Int64(FeedMachine.pollsBetweenStreams)))
        machine.ended(.mute, random: 0)
        #expect(machine.next() == .poll(after: 3 + Int64(FeedMachine.pollsBetweenStreams)))
    }

    @Test func `polling from now on first finds out where now is`() {
        var machine = machine()
        machine.ended(.mute, random: 0)
        _ = machine.next()
        machine.ended(.mute, random: 0)
        #expect(machine.next() == .findPosition)
        machine.found(40)
        #expect(machine.next() == .poll(after: 40))
    }

    @Test func `a network that is away does not make a reader poll`() {
        var machine = machine(at: 1)
        for _ in 0..<5 {
            machine.ended(.failed(AppError(.unavailable, "")), random: 0)
            _ = machine.next()
            #expect(machine.next() == .stream(after: 1))
        }
    }

    @Test func `a sign-in that is over is renewed once, and then it is an error`() {
        var machine = machine(at: 1)
        machine.ended(.expired, random: 0)
        #expect(machine.next() == .renewSignIn)
        #expect(machine.next() == .stream(after: 1))
        let refused = AppError(.authentication, "the token is not accepted")
        machine.ended(.failed(refused), random: 0)
        #expect(machine.next() == .renewSignIn)
        machine.ended(.failed(refused), random: 0)
        #expect(machine.next() == .end(refused))
    }

    @Test(arguments: [AppError.ErrorClass.permission, .not_found, .invalid, .unsupported])
    func `what another attempt cannot mend ends the stream`(_ errorClass: AppError.ErrorClass) {
        var machine = machine()
        let error = AppError(errorClass, "no")
        machine.ended(.failed(error), random: 0)
        #expect(machine.next() == .end(error))
    }

    @Test func `after a reset the reader goes on from the place that the server names`() {
        var machine = machine(at: 3)
        #expect(machine.received(.reset(position: 50)) == .reset(position: 50))
        #expect(machine.received(change(51)) == change(51))
        machine.ended(.finished, random: 0)
        #expect(machine.next() == .end(nil))
    }
}
