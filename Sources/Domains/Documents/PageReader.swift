import Glibc
package import Pages
package import Sandbox
import Synchronization

/// Reads pictures of pages, one page at a time. Two pages at once need two engines.
package protocol PageReader: Sendable {
    /// Part of the key under which a result is cached.
    var name: String { get async }
    /// - Parameter finds: the engine detects which side is up, and straightens the page.
    func read(
        _ raster: Raster, finds: Bool, progress: (@Sendable (Int) -> Void)?
    ) async throws(DocumentFailure) -> PageText
    /// Returns when the engine has ended, with all that it used.
    func end() async -> Usage
}

/// An engine in a child that stays warm for many pages of the same languages, and is then replaced. Any program with our protocol can be
/// one.
package actor ChildPageReader: PageReader {
    private let program: SandboxedChild.Program
    private let limits: SandboxedChild.Limits
    private let pages: Int
    private let patience: EnginePriority
    private var warm: (child: SandboxedChild, niceness: Int, read: Int)?
    private var spent = Worked((), Usage())
    package let name: String
    package private(set) var refusedLayers: UInt32 = 0
    /// The CPU time of the last page.
    package private(set) var pageCPU: Duration = .zero

    package init(
        _ workshop: DocumentPrograms, program: SandboxedChild.Program? = nil,
        patience: EnginePriority = EnginePriority()
    ) {
        let languages = workshop.languages.joined(separator: "+")
        self.program =
            program ?? workshop.program(.ocr, ["models=\(workshop.models)", "languages=\(languages)"])
        limits = workshop.limits(.ocr)
        pages = workshop.enginePages
        self.patience = patience
        let engine = program?.path.split(separator: "/").last.map(String.init) ?? "tesseract"
        // What is found depends on the models that are there.
        let models =
            workshop.languages == DocumentPrograms.found ? ":\(workshop.installedModels.joined(separator: "+"))" : ""
        name = "\(engine)/\(languages)\(models)"
    }

    package func read(
        _ raster: Raster, finds: Bool = true, progress: (@Sendable (Int) -> Void)? = nil
    ) async throws(DocumentFailure) -> PageText {
        let payload = try DocumentPrograms.packet(RecognitionRequest(raster.head, finds: finds), raster.pixels)
        do throws(ChildFailure) {
            let shown = Mutex(-1)  // after a retry the engine starts at 0 % again; the shown progress never goes back
            let answer = try await asked(payload) { note in
                if let percent = Int(String(decoding: note.prefix(3), as: UTF8.self)), (0...100).contains(percent),
                    shown.withLock({ shown in
                        defer { shown = max(shown, percent) }
                        return percent > shown
                    })
                {
                    progress?(percent)
                }
            }
            let (text, _) = try DocumentPrograms.opened(answer.payload, as: PageText.self, Usage())
            try DocumentPrograms.trusted(text)
            return text
        } catch {
            // Only an engine that refused a page by itself is fit for another page.
            if case .refused = error.reason {} else { await retire() }
            throw DocumentFailure(error)
        }
    }

    package func end() async -> Usage {
        await retire()
        return spent.usage
    }

    /// The CPU time that a process has used so far; the kernel counts it in hundredths of a second.
    private static func cpu(of pid: Int32) -> Duration {
        guard let file = fopen("/proc/\(pid)/stat", "r") else { return .zero }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 1024)
        guard fgets(&line, 1024, file) != nil else { return .zero }
        let fields =
            String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            .split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Int(fields[11]), let system = Int(fields[12]) else { return .zero }
        return .milliseconds((user + system) * 10)
    }

    /// The nice value of the warm engine.
    package var niceness: Int? { warm?.niceness }

    private func asked(
        _ payload: [UInt8], note: @escaping @Sendable ([UInt8]) -> Void
    ) async throws(ChildFailure) -> SandboxedChild.Answer {
        while true {
            let child = try await ready()
            let before = child.pid.map(Self.cpu) ?? .zero
            let asking = Task { () async -> Result<SandboxedChild.Answer, ChildFailure> in
                do throws(ChildFailure) {
                    return .success(try await child.ask(payload, note: note))
                } catch {
                    return .failure(error)
                }
            }
            let watching = Task { [patience] in
                guard warm?.niceness ?? 0 > Self.fairness else { return false }
                let began = ContinuousClock.now
                while true {
                    guard (try? await Task.sleep(for: patience.span)) != nil, let pid = child.pid else { return false }
                    guard Self.cpu(of: pid) - before < (.now - began) * patience.share else { continue }
                    patience.end()
                    asking.cancel()
                    return true
                }
            }
            let outcome = await withTaskCancellationHandler {
                await asking.value
            } onCancel: {
                asking.cancel()
            }
            watching.cancel()
            pageCPU = (child.pid.map(Self.cpu) ?? before) - before
            if case .failure(let failure) = outcome, failure.reason == .cancelled, await watching.value,
                !Task.isCancelled
            {
                continue
            }
            return try outcome.get()
        }
    }

    /// The nice value of an engine that must not wait any longer.
    private static let fairness = 5

    private func ready() async throws(ChildFailure) -> SandboxedChild {
        if let found = warm, found.read < pages, found.child.pid != nil,
            found.niceness <= Self.fairness || !patience.isOver
        {
            warm?.read += 1
            return found.child
        }
        await retire()
        var limits = limits
        if patience.isOver { limits.niceness = min(limits.niceness, Self.fairness) }
        let child: SandboxedChild
        do throws(ChildFailure) {
            child = try await SandboxedChild.start(program, limits: limits)
        } catch {
            guard error.reason == .timeout || error.reason == .starved, limits.niceness > Self.fairness else {
                throw error
            }
            patience.end()  // the engine did not even start
            limits.niceness = Self.fairness
            child = try await SandboxedChild.start(program, limits: limits)
        }
        refusedLayers = child.refusedLayers
        warm = (child, limits.niceness, 1)
        return child
    }

    private func retire() async {
        guard let old = warm else { return }
        warm = nil
        if let ending = await old.child.end() { spent.add(ending.usage) }
    }
}

extension DocumentPrograms {
    static func trusted(_ text: PageText) throws(ChildFailure) {
        do throws(DocumentRefusal) {
            try text.check()
        } catch {
            throw ChildFailure(error.reason == .quota ? .refused("quota") : .misspoke, error.sentence)
        }
    }
}
