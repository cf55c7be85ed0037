import Testing

@testable import Composition

@Suite struct TakenMemoryTests {
    @Test func `memory goes back for a minute after many connections have been closed`() {
        var memory = TakenMemory()
        var answers = [memory.mayGoBack(most: 600, now: 600), memory.mayGoBack(most: 600, now: 501)]
        #expect(answers == [false, false])
        // What served them may end beats later: the first attempt may be too early.
        answers = (0..<13).map { _ in memory.mayGoBack(most: 0, now: 0) }
        #expect(answers == Array(repeating: true, count: 12) + [false])
    }

    @Test func `it stays while few are closed, or few of many`() {
        var memory = TakenMemory()
        let answers = [(90, 0), (4000, 3100), (4000, 3000)].map { memory.mayGoBack(most: $0.0, now: $0.1) }
        #expect(answers == [false, false, true])
    }
}
