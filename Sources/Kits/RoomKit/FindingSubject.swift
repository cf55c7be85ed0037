/// What a finding is about, so that a page can lead there.
package enum FindingSubject: Sendable, Hashable {
    case queue(String)
    /// Runs of a kind, in a queue; nil: of all kinds.
    case runs(queue: String, kind: String?)
    case kind(String)
    case job(Int64)
    case worker(String)
    case provider(String, class: String)
    case schedule(String)
    case build(String)
    case room(String)

    package var name: String {
        switch self {
        case .queue(let name), .kind(let name), .worker(let name), .schedule(let name), .build(let name),
            .room(let name):
            name
        case .runs(let queue, let kind): kind ?? queue
        case .job(let id): "job \(id)"
        case .provider(let name, let part): part == "default" || part == "*" ? name : "\(name) (\(part))"
        }
    }
}
