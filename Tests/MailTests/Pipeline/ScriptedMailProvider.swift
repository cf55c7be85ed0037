import Faults
import FoundationEssentials
import Mail
import Supervision
import Synchronization

/// A provider with scripted answers, which records what it took.
final class ScriptedMailProvider: MailProvider {
    enum Act: Sendable {
        case accept
        /// Takes it, and the answer is lost.
        case acceptAndLose
        case lose
        case refuse(Fault)
        case throttle(Fault)
    }

    let name: String
    let capabilities: Capabilities
    private let script: @Sendable (_ call: Int, _ letters: [Letter]) -> Act
    private let state = Mutex(State())

    struct State: Sendable {
        var calls: [(key: String, messages: [String])] = []
        /// The answers under each key: a key works once.
        var known: [String: [String]] = [:]
        /// How often each message was taken.
        var taken: [String: Int] = [:]
        var letters: [String: Letter] = [:]
        var asked = 0
    }

    init(
        _ name: String, batch: Int = 1, keyHolds: Duration? = .seconds(86_400), answersLater: Bool = false,
        _ script: @escaping @Sendable (_ call: Int, _ letters: [Letter]) -> Act = { _, _ in .accept }
    ) {
        self.name = name
        var capabilities = Capabilities()
        capabilities.batch = batch
        capabilities.keyHolds = keyHolds
        capabilities.answersLater = answersLater
        self.capabilities = capabilities
        self.script = script
    }

    var seen: State { state.withLock { $0 } }

    func objection(to letter: Letter) -> String? {
        letter.subject.contains("not by \(name)") ? "the subject says so" : nil
    }

    func send(_ letters: [Letter], key: String, call: Call) async -> [SendOutcome] {
        let ids = letters.map { $0.id.uuidString.lowercased() }
        let (number, known) = state.withLock { state in
            state.calls.append((key, ids))
            return (state.calls.count, capabilities.keyHolds == nil ? nil : state.known[key])
        }
        defer { call.heardQuota(used: Int64(seen.taken.count), limit: nil, resets: .seconds(3600)) }
        let act = script(number, letters)
        func all(_ answer: SendOutcome) -> [SendOutcome] { letters.map { _ in answer } }
        switch act {
        case .accept, .acceptAndLose:
            let given = known ?? take(ids, letters, key)
            if case .acceptAndLose = act { return all(.unknown(Fault(.unknown, "the answer was lost"))) }
            return given.map { .accepted(id: $0) }
        case .lose: return all(.unknown(Fault(.unknown, "no answer")))
        case .refuse(let fault): return all(.refused(fault))
        case .throttle(let fault): return all(.throttled(fault))
        }
    }

    private func take(_ ids: [String], _ letters: [Letter], _ key: String) -> [String] {
        state.withLock { state in
            let given = ids.map { "\(name)-\($0)" }
            state.known[key] = given
            for (id, letter) in zip(ids, letters) {
                state.taken[id, default: 0] += 1
                state.letters[id] = letter
            }
            return given
        }
    }

    func status(of id: String, call: Call) async throws(Fault) -> String? {
        state.withLock { state in
            state.asked += 1
            return state.taken.keys.contains { "\(name)-\($0)" == id } ? "delivered" : nil
        }
    }
}
