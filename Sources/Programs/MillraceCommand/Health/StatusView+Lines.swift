import MillraceQueues
import Supervision

/// The screen of `millrace status`: the verdict, and a section for each part of the fleet.
extension StatusView {
    func lines(width: Int?, colors: Bool) -> [String] {
        var page = StatusPage(lines: head(width: width, colors: colors), width: width, colors: colors)
        // Findings that need a person come first: a window may be too low for the rest.
        page.title("attention")
        attention.forEach { page.text($0) }
        queues(on: &page)
        lanes(on: &page)
        workers(on: &page)
        limits(on: &page)
        schedules(on: &page)
        providers(on: &page)
        rooms(on: &page)
        page.title("storage")
        storage.forEach { page.text($0) }
        schema(on: &page)
        return page.lines
    }

    private func queues(on page: inout StatusPage) {
        page.title("queues")
        switch report.queues {
        case .known(let queues):
            let shown = Self.shown(queues)
            page.table(QueueDepth.table(shown, rates: report.rates.value ?? [], cap: report.cap))
            if shown.count < queues.count {
                page.text("and \(Humane.count(queues.count - shown.count)) more: millrace queues list")
            }
        case .unavailable(let reason): page.missing(reason)
        }
        if let reason = report.rates.reason { page.text("rates unavailable: \(reason)") }
    }

    /// Of many queues those that have most to do, and those that stand still.
    private static func shown(_ queues: [QueueDepth]) -> [QueueDepth] {
        guard queues.count > mostQueues else { return queues }
        func rank(_ queue: QueueDepth) -> (Int, Int) {
            (queue.isLate || (queue.pausedAt != nil && queue.ready > 0) ? 1 : 0, queue.ready + queue.running)
        }
        return queues.sorted { rank($0) > rank($1) }.prefix(mostQueues).sorted { $0.name < $1.name }
    }

    private static let mostQueues = 50

    private func lanes(on page: inout StatusPage) {
        switch report.lanes {
        case .known(let lanes):
            // A room that nobody uses has nothing to read.
            let used = lanes.filter(\.isUsed)
            guard !used.isEmpty else { return }
            page.title("lanes")
            page.table(LaneRow.table(used, cap: report.cap))
        case .unavailable(let reason):
            page.title("lanes")
            page.missing(reason)
        }
    }

    private func workers(on page: inout StatusPage) {
        page.title("workers")
        switch report.workers {
        case .known(let workers):
            page.table(WorkerRow.table(workers))
            // One build for all is nothing to read.
            let builds = report.runningBuilds
            if builds.count > 1 || builds.contains(where: { $0.state != nil }) {
                page.text("builds: " + builds.map(\.sentence).joined(separator: "; "))
            }
        case .unavailable(let reason): page.missing(reason)
        }
    }

    private func limits(on page: inout StatusPage) {
        switch report.limits {
        case .known([]): break
        case .known(let limits):
            page.title("limits")
            page.table(LimitRow.table(limits))
        case .unavailable(let reason):
            page.title("limits")
            page.missing(reason)
        }
    }

    private func schedules(on page: inout StatusPage) {
        switch report.schedules {
        case .known(let schedules):
            // Without any, there is nothing to read.
            if !schedules.isEmpty {
                page.title("schedules")
                page.table(ScheduleRow.table(Array(schedules.prefix(StatusReport.mostSchedules))))
                if schedules.count > StatusReport.mostSchedules { page.text("and more: millrace schedules list") }
            }
        case .unavailable(let reason):
            page.title("schedules")
            page.missing(reason)
        }
    }

    private func providers(on page: inout StatusPage) {
        switch report.providers {
        case .known([]): break
        case .known(let providers):
            page.title("providers")
            page.table(ProviderRow.table(Array(providers.prefix(StatusReport.mostSchedules))))
            if providers.count > StatusReport.mostSchedules { page.text("and more: millrace providers list") }
        case .unavailable(let reason):
            page.title("providers")
            page.missing(reason)
        }
    }

    private func rooms(on page: inout StatusPage) {
        for part in report.parts {
            switch part.state {
            case .known(let state):
                // Of a room that is not used there is nothing to read.
                guard let lines = state?.lines, !lines.isEmpty else { continue }
                page.title(part.status.title)
                lines.forEach { page.text($0) }
            case .unavailable(let reason):
                page.title(part.status.title)
                page.missing(reason)
            }
        }
    }

    private func schema(on page: inout StatusPage) {
        page.title("schema")
        switch report.schema {
        case .known(let state):
            page.text("version \(state.version); this program speaks \(Queue.schemaVersion)")
        case .unavailable(let reason): page.missing(reason)
        }
    }

    private var attention: [String] {
        var lines: [String] = []
        switch report.orphans {
        case .known(let orphans):
            lines += orphans.map { "no worker for \($0.kind): \(Humane.count($0.waiting)) wait" }
        case .unavailable(let reason): lines.append("kinds without worker unavailable: \(reason)")
        }
        switch report.deadLastDay {
        case .known(0): break
        case .known(let dead):
            lines.append(
                "\(QueueDepth.counted(dead, cap: 10_000)) dead in the last day: millrace jobs list --state dead")
        case .unavailable(let reason): lines.append("dead jobs unavailable: \(reason)")
        }
        switch report.blocked {
        case .known(0): break
        case .known(let blocked):
            let wait = blocked == 1 ? "job waits" : "jobs wait"
            lines.append(
                "\(QueueDepth.counted(blocked, cap: 10_000)) \(wait) for other jobs: millrace jobs list --state blocked"
            )
        case .unavailable(let reason): lines.append("blocked jobs unavailable: \(reason)")
        }
        switch report.parked {
        case .known(0): break
        case .known(let parked):
            let wait = parked == 1 ? "job waits" : "jobs wait"
            lines.append("\(QueueDepth.counted(parked, cap: 10_000)) \(wait) for a limit key: millrace queues limit")
        case .unavailable(let reason): lines.append("jobs held back by a limit key unavailable: \(reason)")
        }
        switch report.retries {
        case .known(let rows):
            let retrying = rows.reduce(0) { $0 + $1.jobs }
            if retrying > 0 {
                lines.append(
                    "\(Humane.count(retrying)) \(retrying == 1 ? "job waits" : "jobs wait") for another attempt")
            }
        case .unavailable(let reason): lines.append("jobs that wait for another attempt unavailable: \(reason)")
        }
        if report.rooms.value?.contains(where: \.becomesFiles) ?? false {
            lines.append("mail is written to files at some worker: no mail service is configured there")
        }
        if let reason = report.rooms.reason { lines.append("rooms without worker unavailable: \(reason)") }
        for worker in report.workers.value ?? [] {
            if worker.stuck > 0 { lines.append("\(worker.name) has \(worker.stuck) stuck handlers") }
            if worker.isSilent {
                lines.append("\(worker.name) has been silent for \(Humane.duration(.seconds(worker.beatAge)))")
            } else if worker.isClockWrong {
                lines.append("\(worker.name): \(worker.clockSentence)")
            }
        }
        let paused = (report.queues.value ?? []).filter { $0.pausedAt != nil }
        lines += paused.prefix(Self.mostQueues).map { "\($0.name) is paused" }
        if paused.count > Self.mostQueues {
            lines.append("\(Humane.count(paused.count - Self.mostQueues)) more queues are paused")
        }
        return lines.isEmpty ? ["nothing"] : lines
    }

    private var storage: [String] {
        var lines: [String] = []
        switch report.sizes {
        case .known(let sizes):
            let total = sizes.reduce(0) { $0 + $1.bytes }
            let largest = sizes.prefix(3).map { "\($0.name) \(Humane.bytes($0.bytes))" }.joined(separator: ", ")
            lines.append("\(Humane.bytes(total)) in \(sizes.count) tables; largest: \(largest)")
        case .unavailable(let reason): lines.append("sizes unavailable: \(reason)")
        }
        switch report.sealed {
        case .known(let keys):
            if !keys.isEmpty { lines.append("encrypted jobs by key: \(keys.map(\.summary).joined(separator: ", "))") }
        case .unavailable(let reason): lines.append("encryption keys unavailable: \(reason)")
        }
        switch report.pins {
        case .known(let pins):
            if let pin = pins.max(by: { $0.age < $1.age }) {
                lines.append(
                    "oldest transaction: \(Humane.duration(.seconds(pin.age))), pid \(pin.pid), \(pin.application ?? "?"), \(pin.state ?? "?")"
                )
            }
        case .unavailable(let reason): lines.append("open transactions unavailable: \(reason)")
        }
        switch report.partitions {
        case .known(let ahead):
            lines.append(
                "partitions ahead: \(ahead.historyDays.map { "\($0) days" } ?? "none"), \(Humane.count(ahead.jobIDs)) job ids"
            )
        case .unavailable(let reason): lines.append("partitions unavailable: \(reason)")
        }
        return lines
    }
}

/// The lines of a screen, wrapped to its width.
private struct StatusPage {
    var lines: [String]
    let width: Int?
    let colors: Bool

    mutating func title(_ text: String) { lines += ["", Style.bold.paint(text, on: colors)] }

    mutating func text(_ content: String) {
        let columns = width.map { max(20, $0 - 2) } ?? .max
        lines += Wrapping.lines(DisplayWidth.harmless(content), columns: columns).map { "  " + $0 }
    }

    mutating func missing(_ reason: String) { text("unavailable: \(reason)") }

    mutating func table(_ table: Table) {
        lines += table.lines(width: width.map { $0 - 2 }, colors: colors).map { "  " + $0 }
    }
}
