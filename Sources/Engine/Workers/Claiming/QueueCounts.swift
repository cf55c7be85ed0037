/// How many jobs of each queue are held, and how many of them run. Mostly the same queue is asked for again and again.
struct QueueCounts: Sendable {
    private var places: [Int32: Int] = [:]
    private var counts: [(held: Int, running: Int)] = []
    private var last: (queue: Int32, place: Int)?

    func held(of queue: Int32) -> Int { places[queue].map { counts[$0].held } ?? 0 }
    func running(of queue: Int32) -> Int { places[queue].map { counts[$0].running } ?? 0 }

    mutating func add(held: Int = 0, running: Int = 0, to queue: Int32) {
        let place = place(of: queue)
        counts[place].held += held
        counts[place].running += running
    }

    private mutating func place(of queue: Int32) -> Int {
        if let last, last.queue == queue { return last.place }
        let place = places[queue] ?? counts.count
        if place == counts.count {
            places[queue] = place
            counts.append((0, 0))
        }
        last = (queue, place)
        return place
    }
}
