package import Encryption
import Glibc
package import MillraceJobs
package import Postgres
package import Threads
package import Traces

extension JobWorker {
    package struct Options: Sendable {
        package var database: ConnectionOptions
        /// Where LISTEN and session locks work, when `database` is a transaction pooler.
        package var direct: ConnectionOptions?
        /// Leaves its connections there, and takes those of the last worker; nil: it opens and closes its own.
        package var kept: KeptConnections?
        /// What other rooms of the process hear by, too; the worker hosts it. It leads to where `direct` does.
        package var hearing: NotificationHub?
        /// None: every queue. A number bounds how many of a queue's jobs run here at once.
        package var queues: [(name: String, slots: Int?)] = []
        package var slots = 100
        /// Its part of the slots, where several workers of the process share them; nil: all are its own.
        package var share: SlotShare?
        /// Of queues that must not take all slots for themselves, where ``queues`` says nothing of them.
        package var bounds: [String: Int] = [:]
        package var name: String
        package var drainDeadline = Duration.seconds(30)
        package var poll = Duration.seconds(1)
        package var beat = Duration.seconds(2)
        package var watch = Watch.Limits()
        /// Limits in bytes: of a claim's answer; of an answer with the contents of large jobs; of all such contents in this worker; of one job,
        /// which ends without a run if it has more; and of any answer, which is more than any should need.
        package var bytes = (claim: 8 << 20, read: 16 << 20, held: 64 << 20, job: 16 << 20, answer: 48 << 20)
        /// How long after its cancellation a handler counts as stuck.
        package var stuckGrace = Duration.seconds(5)
        package var cutOffAfter = Duration.seconds(20)
        /// Made or changed before the worker starts.
        package var schedules: [Schedule] = []
        /// What opens encrypted arguments.
        package var keys = Keyring.empty
        /// Who started us and wants to hear how we are.
        package var service: ServiceSocket?
        /// Who counts its runs.
        package var observer: Observer?
        /// Records a span for each run; nil: no traces are recorded.
        package var tracer: Tracer?
        /// What the process does beside these jobs, each with how: `["mail": "resend", "notices": "on"]`. `status` names what nobody does.
        package var rooms: [String: String] = [:]
        /// Which build of the program this is; nil: the hash of the executable says it. `status` compares the newest with earlier ones.
        package var build: String?

        /// It takes new jobs only while its build is the promoted one, and goes on only with jobs that its build began.
        package var isPinned = false

        var buildText: String { build ?? ProgramBuild.hash }
        var versionText: String {
            let build = buildText
            return build.isEmpty ? JobWorker.version : "\(JobWorker.version)+\(build)"
        }

        /// For so long it may try in vain to claim, to read, to record or to tell that it lives, until it is not ready: as long as one
        /// statement may take.
        var stallsAfter: Duration { min(database.statementDeadline, .seconds(10)) }

        package init(database: ConnectionOptions, name: String? = nil) {
            self.database = database
            self.name = name ?? "\(Self.host)-\(getpid())"
            build = getenv("MILLRACE_BUILD").map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
        }

        package static var host: String {
            var buffer = [CChar](repeating: 0, count: 256)
            gethostname(&buffer, 255)
            return buffer.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "?" }
        }
    }

    package struct Report: Sendable, Equatable {
        package var finished: Int
        package var handedBack: Int
        package var refused: Int
        package var abandoned: Int
        /// Ends that could not be recorded because the database stayed away; those jobs will run again.
        package var unrecorded: Int

        /// Of a worker that was rehearsed: it has run nothing.
        package static let nothing = Report(finished: 0, handedBack: 0, refused: 0, abandoned: 0, unrecorded: 0)
    }

    package enum Failure: Error, Sendable, CustomStringConvertible {
        case schema(found: Int?, needed: Int, oldest: Int?)
        case database(PostgresError)
        case noHandlers

        package var description: String {
            switch self {
            case .schema(nil, _, _): "The database has no Millrace schema. Run: millrace migrate"
            case .schema(.some(let found), let needed, _) where found < needed:
                "The schema is version \(found), and this worker needs \(needed). Run: millrace migrate"
            case .schema(.some(let found), let needed, let oldest):
                "The schema is version \(found) and serves workers from version \(oldest ?? found) on; this one is \(needed). Use a newer worker."
            case .database(let error): error.description
            case .noHandlers: "The worker has no handlers: register at least one kind of job."
            }
        }
    }
}
