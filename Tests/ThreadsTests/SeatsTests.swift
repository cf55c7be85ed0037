import Testing
import Threads

@Suite struct SeatsTests {
    @Test func `a name has its seats, all together have theirs, and what is left can be taken again`() throws {
        let seats = Seats(inAll: 3, perName: 2)
        let first = try seats.take("ada")
        var second: Seat? = try seats.take("ada")
        #expect(throws: Seats.Refusal.ofName) { try seats.take("ada") }
        let bobs = try seats.take("bob")
        #expect(throws: Seats.Refusal.inAll) { try seats.take("cyd") }
        #expect(seats.taken == 3)
        first.leave()
        first.leave()
        #expect(seats.taken == 2, "a seat is left once")
        // One that nothing holds any more is free.
        second = nil
        #expect(second == nil && seats.taken == 1)
        let again = [try seats.take("ada"), try seats.take("ada")]
        #expect(throws: Seats.Refusal.ofName) { try seats.take("ada") }
        bobs.leave()
        for seat in again { seat.leave() }
        #expect(seats.taken == 0)
    }
}
