import FoundationEssentials
import Glibc
import Threads

/// What lies under some paths, as one number: it differs when a file came, went or was written. Names that begin with a dot are left out, for they
/// hold what builds make.
struct SourceState: Hashable, Sendable {
    private(set) var files = 0
    private var sum = 0
    /// More is not looked at.
    static let most = 50_000

    /// Blocks: it reads folders.
    static func look(at paths: [String]) -> SourceState {
        var state = SourceState()
        var left = paths
        while let path = left.popLast(), state.files < most {
            var info = stat()
            guard stat(path, &info) == 0 else { continue }
            guard info.st_mode & S_IFMT == S_IFDIR else {
                state.add(path, info)
                continue
            }
            let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
            for name in names where !name.hasPrefix(".") {
                let inner = path + "/" + name
                // A link to a folder may lead into a circle.
                var link = stat()
                guard lstat(inner, &link) == 0 else { continue }
                if link.st_mode & S_IFMT == S_IFLNK, stat(inner, &link) != 0 || link.st_mode & S_IFMT == S_IFDIR {
                    continue
                }
                left.append(inner)
            }
        }
        return state
    }

    private mutating func add(_ path: String, _ info: stat) {
        var hasher = Hasher()
        hasher.combine(path)
        hasher.combine(info.st_mtim.tv_sec)
        hasher.combine(info.st_mtim.tv_nsec)
        hasher.combine(info.st_size)
        hasher.combine(info.st_ino)
        files += 1
        sum &+= hasher.finalize()  // in any order
    }
}

/// Says from one look to the next when to build: sources have changed, and two looks agree. Editors write one file after the other.
struct SettledSources: Sendable {
    private enum State: Equatable {
        /// Nothing has changed since. Next: changing.
        case quiet(SourceState)
        /// Next: quiet, once the same is seen again.
        case changing(from: SourceState, to: SourceState)
    }

    private var state: State

    init(_ first: SourceState) {
        state = .quiet(first)
    }

    /// True: it is time to build.
    mutating func look(_ now: SourceState) -> Bool {
        switch state {
        case .quiet(let known):
            if now != known { state = .changing(from: known, to: now) }
            return false
        case .changing(let known, let last):
            guard now == last else {
                state = .changing(from: known, to: now)
                return false
            }
            state = .quiet(now)
            return now != known
        }
    }
}

/// Looks at sources, on a thread of its own.
actor SourceWatch {
    private let thread = ThreadExecutor(name: "sources")
    private let paths: [String]
    private var settled: SettledSources

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Blocks for a look.
    init(_ paths: [String]) {
        self.paths = paths
        settled = SettledSources(SourceState.look(at: paths))
    }

    deinit { thread.stop() }

    /// Whether to build now.
    func look() -> Bool {
        settled.look(SourceState.look(at: paths))
    }
}
