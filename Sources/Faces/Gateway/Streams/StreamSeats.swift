import Listeners
import Threads

extension Seats {
    /// A seat for a stream or a long poll, taken before anything is read for it.
    /// - Parameter what: what is open, for the refusal.
    func streamSeat(of person: String, _ what: String) throws(ErrorAnswer) -> Seat {
        do throws(Refusal) {
            return try take(person)
        } catch .ofName {
            throw ErrorAnswer(
                .throttled, "\(perName) \(what) of this person are open on this gateway",
                hint: "close streams that are not used; one stream of /v1/me/events brings all topics",
                headers: [Header("Retry-After", "10")])
        } catch {
            throw ErrorAnswer(
                .unavailable, "\(inAll) \(what) are open on this gateway", headers: [Header("Retry-After", "10")])
        }
    }
}
