import Faults

/// Findings of one sort, the longest first. People read groups: forty-five late queues are one thing to do, or a few.
package struct FindingGroup: Sendable {
    package let alarm: Alarm
    package let findings: [Finding]

    package var severity: Severity { findings.map(\.severity).max() ?? .ok }

    /// For how many seconds the oldest has been there, where that is known.
    package var age: Double? { findings.compactMap(\.age).max() }

    /// One sentence for all.
    package var sentence: String {
        guard findings.count > 1 else { return findings.first?.sentence ?? "" }
        let count = Humane.count(findings.count)
        let longest = age.map { ", the longest for \(Humane.duration(.seconds($0)))" } ?? ""
        return switch alarm {
        case .lateQueue: "\(count) queues have jobs that wait too long\(longest)"
        case .pausedQueue: "\(count) paused queues have waiting jobs\(longest)"
        case .failingRuns: "\(count) kinds of jobs fail"
        case .failingBuild: "the newest build fails in \(count) kinds of jobs"
        case .retries: "retries pile up in \(count) kinds of jobs"
        case .unknownKind: "no worker knows \(count) kinds of jobs"
        case .strandedBuild: "\(count) builds have jobs and no worker"
        case .silentWorker: "\(count) workers are silent\(longest)"
        case .stuckHandlers: "\(count) workers have stuck handlers"
        case .workerClock: "\(count) workers have a wrong clock"
        case .endsWorkers: "\(count) jobs crash their workers"
        case .cancelIgnored: "\(count) cancelled jobs still run"
        case .brokenSchedule: "\(count) schedules cannot fire"
        case .overdueSchedule: "\(count) schedules are overdue\(longest)"
        case .missedTimes: "\(count) schedules missed times in the last hour"
        case .providerOpen: "\(count) providers are not called\(longest)"
        case .providerForced: "\(count) providers are held in a state by hand"
        case .unservedRoom: "\(count) rooms have work that no worker does"
        case .failingHook: "\(count) hooks of rooms fail"
        default: "\(alarm.name), \(count) times"
        }
    }

    /// What cannot wait stands first: nothing runs, then something fails for many, then what one job or one worker has.
    private static let order: [Alarm] = [
        .condition, .unknownState, .notWritable, .noWorker, .noPartitions, .fewConnections, .providerOpen,
        .heldUp, .lockTable, .failingBuild, .failingRuns,
        .lateQueue, .pausedQueue, .unservedRoom, .unknownKind, .strandedBuild, .retries, .silentWorker, .stuckHandlers,
        .endsWorkers, .deadJobs, .overdueSchedule, .brokenSchedule, .missedTimes, .providerForced, .cancelIgnored,
        .workerClock, .notifyLock, .subtransactions, .openTransaction, .oldVersions, .catalogue, .identifiers,
        .failingHook, .mailFiles, .strayHistory, .testClock,
    ]

    /// Groups in the order in which they should be looked at. Alarms of rooms stand with the core's of their severity, behind those that stop work.
    package static func all(of findings: [Finding]) -> [FindingGroup] {
        var byAlarm: [Alarm: [Finding]] = [:]
        var alarms: [Alarm] = []
        for finding in findings {
            if byAlarm[finding.alarm] == nil { alarms.append(finding.alarm) }
            byAlarm[finding.alarm, default: []].append(finding)
        }
        let groups = alarms.map { alarm in
            let own = (byAlarm[alarm] ?? []).enumerated().sorted { left, right in
                (left.element.severity, left.element.age ?? 0, right.offset) > (
                    right.element.severity, right.element.age ?? 0, left.offset
                )
            }
            return FindingGroup(alarm: alarm, findings: own.map(\.element))
        }
        func place(_ group: FindingGroup) -> Double {
            order.firstIndex(of: group.alarm).map(Double.init) ?? 13.5
        }
        return groups.enumerated().sorted { left, right in
            if left.element.severity != right.element.severity { return left.element.severity > right.element.severity }
            return (place(left.element), left.offset) < (place(right.element), right.offset)
        }.map(\.element)
    }
}
