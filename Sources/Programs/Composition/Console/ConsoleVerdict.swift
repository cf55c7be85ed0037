package import Console
import FoundationEssentials
import RoomKit
package import StatusKit

extension ConsoleService.Verdict {
    /// What `status` says, as the console shows it.
    package init(of report: StatusReport) {
        let groups = FindingGroup.all(of: report.findings)
        let worst = groups.map(\.severity).max() ?? .ok
        self.init(word: worst.word, findings: groups.map(VerdictFinding.init))
    }
}

extension VerdictFinding {
    fileprivate init(_ group: FindingGroup) {
        self.init(
            isCritical: group.severity == .critical, sentence: group.sentence,
            since: group.age.map { Date(timeIntervalSinceNow: -$0) }, remedy: Self.remedy(of: group.alarm),
            page: Self.page(of: group.alarm),
            items: group.findings.map {
                Item(sentence: $0.sentence, subject: $0.subject.map(Subject.init), command: $0.command)
            })
    }

    private static func remedy(of alarm: Alarm) -> Remedy? {
        switch alarm {
        case .pausedQueue: .resumeQueue
        case .providerOpen: .closeCircuit
        case .providerForced: .releaseCircuit
        default: nil
        }
    }

    private static func page(of alarm: Alarm) -> (path: String, label: String)? {
        switch alarm {
        case .lateQueue, .pausedQueue: ("/queues", "Queues")
        case .noWorker, .silentWorker, .stuckHandlers, .workerClock, .unknownKind, .unservedRoom, .cancelIgnored:
            ("/workers", "Workers")
        case .deadJobs, .failingRuns, .endsWorkers: ("/failures", "Failures")
        case .retries: ("/jobs?state=retrying", "Retrying jobs")
        case .failingBuild, .strandedBuild: ("/versions", "Versions")
        case .brokenSchedule, .overdueSchedule, .missedTimes: ("/schedules", "Schedules")
        case .providerOpen, .providerForced: ("/providers", "Providers")
        case .noPartitions, .openTransaction, .strayHistory: ("/storage", "Storage")
        default: nil
        }
    }
}

extension VerdictFinding.Subject {
    fileprivate init(_ subject: FindingSubject) {
        self =
            switch subject {
            case .queue(let name): .queue(name)
            case .runs(let queue, let kind): .runs(queue: queue, kind: kind)
            case .kind(let name): .kind(name)
            case .job(let id): .job(id)
            case .worker(let name): .worker(name)
            case .provider(let name, class: _): .provider(name)
            case .schedule(let name): .schedule(name)
            case .build(let name): .build(name)
            case .room(let name): .room(name)
            }
    }
}
