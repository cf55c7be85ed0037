import Supervision

extension Moment {
    static let start = Moment(nanoseconds: 1_000_000_000_000)

    func after(_ milliseconds: Int) -> Moment { self + .milliseconds(milliseconds) }
}

let sequences = 100_000
