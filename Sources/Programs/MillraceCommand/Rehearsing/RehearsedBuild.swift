import ChildProtocol
import FoundationEssentials
import Sandbox
package import Workers

/// A build that is rehearsed: a child process that is started again when it has died. It owns that process.
package actor RehearsedBuild {
    package struct Start: Sendable {
        package var program: String
        package var arguments: [String]
        /// All the variables that it has.
        package var environment: [String: String]
        /// How long one run may take.
        package var limit: Duration

        package init(
            program: String, arguments: [String] = [], environment: [String: String] = [:],
            limit: Duration = .seconds(10)
        ) {
            (self.program, self.arguments, self.environment, self.limit) = (program, arguments, environment, limit)
        }
    }

    private static let startLimit = Duration.seconds(60)
    /// As a verdict is confirmed: a machine that is busy is no handler that asks for steps in another order.
    private static let longPatience = 250
    /// Of the same sort, this many are confirmed; the others are believed.
    private static let confirmations = 10
    /// A kind that hangs or crashes this often is left alone.
    private static let mostTroubles = 3

    private struct Sort: Hashable {
        var kind: String
        var cause: RehearsalFinding.Cause
        var step: String?
    }

    private let start: Start
    private var program: FramedProgram?
    private var confirmed: [Sort: Int] = [:]
    private var troubles: [String: Int] = [:]

    package init(_ start: Start) {
        self.start = start
    }

    /// Starts it, and returns what it can do.
    package func open() async throws(Failure) -> RehearsalHello {
        let program = FramedProgram(longest: [.hello: 1 << 24, .result: 1 << 30])
        var environment = start.environment
        environment[RehearsalServer.variable] = "\(FramedProgram.place)"
        do throws(FramedProgram.Failure) {
            try await program.start(start.program, start.arguments, environment: environment)
            let frame = try await program.exchange(nil, within: Self.startLimit)
            guard frame.kind == .hello,
                let hello = try? JSONDecoder().decode(RehearsalHello.self, from: Data(frame.payload))
            else { throw .misspoke }
            self.program = program
            return hello
        } catch {
            throw Self.failure(error)
        }
    }

    package func close() async {
        await program?.stop()
        program = nil
    }

    /// What is wrong for one job; nil: its kind has been left alone.
    package func rehearse(_ one: RehearsalCase) async throws(Failure) -> [RehearsalFinding]? {
        guard troubles[one.job.kind, default: 0] < Self.mostTroubles else { return nil }
        let (first, findings) = try await run(one)
        guard let first, let worst = findings.first else { return findings }
        let sort = Sort(kind: one.job.kind, cause: worst.cause, step: worst.step)
        guard confirmed[sort, default: 0] < Self.confirmations else { return findings }
        var again = one
        again.request.patience = Self.longPatience
        let (second, sure) = try await run(again)
        // What differs between two runs is no input that could be compared.
        let steady = sure.filter { $0.cause != .input || second?.waits == first.waits }
        if !steady.isEmpty { confirmed[sort, default: 0] += 1 }
        return steady
    }

    /// One run, and what is wrong with it; without an answer the process has died.
    private func run(_ one: RehearsalCase) async throws(Failure) -> (RehearsalAnswer?, [RehearsalFinding]) {
        if program == nil { _ = try await open() }
        guard let program, let payload = try? JSONEncoder().encode(one.request) else { return (nil, []) }
        do throws(FramedProgram.Failure) {
            let frame = try await program.exchange(Frame(.request, Array(payload)), within: start.limit)
            guard frame.kind == .result,
                let answer = try? JSONDecoder().decode(RehearsalAnswer.self, from: Data(frame.payload))
            else { throw .misspoke }
            return (answer, RehearsalJudge.findings(one.job, answer))
        } catch {
            self.program = nil
            troubles[one.job.kind, default: 0] += 1
            switch error {
            case .late: return (nil, [RehearsalFinding(.hung, "its handler takes longer than \(start.limit)")])
            case .ended(let how, let messages):
                let last = Self.lastLine(messages)
                return (
                    nil, [RehearsalFinding(.crashed, "its process dies: \(how)" + (last.isEmpty ? "" : ": \(last)"))]
                )
            case .cannotStart, .misspoke: throw Self.failure(error)
            }
        }
    }

    private static func lastLine(_ messages: String) -> String {
        String((messages.split(separator: "\n").last { !$0.allSatisfy(\.isWhitespace) } ?? "").prefix(200))
    }

    private static func failure(_ error: FramedProgram.Failure) -> Failure {
        switch error {
        case .cannotStart(let why): Failure(.misused, "the new build cannot be started: \(why)")
        case .late:
            Failure(
                .misused, "the new build did not come to its worker within \(startLimit)",
                hint: "it must embed a worker of this version or a later one, and call its run()")
        case .ended(let how, let messages):
            Failure(
                .misused,
                "the new build did not come to its worker: \(how)"
                    + (lastLine(messages).isEmpty ? "" : ": \(lastLine(messages))"),
                hint: "--arg gives it arguments, --env NAME passes a variable on; it has few of them")
        case .misspoke: Failure(.misused, "the new build does not speak as a worker of this version")
        }
    }
}
