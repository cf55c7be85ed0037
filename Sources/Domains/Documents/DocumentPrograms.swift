import FoundationEssentials
import Glibc
package import Pages
package import Sandbox

/// The programs that look at documents, and how much each may use.
package struct DocumentPrograms: Sendable {
    /// The folder the programs are in.
    package var children: String
    package var models: String
    package var languages: [String]
    package var quotas = Quotas()
    /// How much CPU time a page may take.
    package var pageCPU: Duration = .seconds(60)
    package var dpiCap = Raster.caps.high
    /// Most pixels of a drawn page. A larger page is drawn at a lower resolution.
    package var mostPixels = 24_000_000
    /// The engines' nice value. At 20 they get CPU time only when nothing else wants it; EnginePriority raises them when they starve.
    package var niceness = 20
    /// The folder of poppler-data, which has the tables of Chinese, Japanese and Korean characters.
    package var characterTables = usualCharacterTables
    /// An engine is replaced after this many pages, so that memory it leaked is freed.
    package var enginePages = 200

    package init(children: String, models: String, languages: [String] = ["eng"]) {
        self.children = children
        self.models = models
        self.languages = languages
    }

    /// Debian's directory for the models.
    package static let usualModels = "/usr/share/tesseract-ocr/5/tessdata"

    /// In the place of languages: those of each page are found.
    package static let found = ["auto"]

    /// The names of the installed models.
    package var installedModels: [String] {
        guard let folder = opendir(models) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: entry.pointee.d_name) { start in
                start.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name.hasSuffix(".traineddata") { names.append(String(name.dropLast(".traineddata".count))) }
        }
        return names.sorted()
    }

    package static let usualCharacterTables = "/usr/share/poppler"

    /// From `MILLRACE_CHILDREN` and `MILLRACE_TESSDATA`; without them the programs are beside this one, and the models where Debian has
    /// them.
    package init(environment: [String: String], beside program: String) {
        let folder = program.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        self.init(
            children: environment["MILLRACE_CHILDREN"] ?? (folder.isEmpty ? "." : folder),
            models: environment["MILLRACE_TESSDATA"] ?? Self.usualModels)
    }

    package enum Stage: String, Sendable, CaseIterable {
        case probe, raster, picture, heic, ocr, assemble, report, codes

        /// Without this one a worker reads documents all the same, and no codes.
        package static let required = allCases.filter { $0 != .codes }
    }

    package func program(_ stage: Stage, _ arguments: [String] = []) -> SandboxedChild.Program {
        let isElsewhere = stage == .raster && characterTables != Self.usualCharacterTables
        return SandboxedChild.Program(
            "\(children)/millrace-\(stage.rawValue)", arguments + (isElsewhere ? ["data=\(characterTables)"] : []))
    }

    package func limits(_ stage: Stage) -> SandboxedChild.Limits {
        var limits = SandboxedChild.Limits()
        limits.fileSize = 0
        limits.wall = pageCPU * 2 + .seconds(30)
        // For files larger than usual, which are mapped into memory.
        let room = max(0, min(quotas.bytes, 1 << 30) - Quotas().bytes)
        switch stage {
        case .probe:
            // A document that takes longer to inspect is refused early.
            limits.memory = (768 << 20) + room
            limits.cpu = .seconds(10)
            limits.wall = .seconds(20)
            limits.answer = 4 << 20
        case .raster, .picture, .heic:
            limits.memory = (1 << 30) + room
            limits.cpu = min(pageCPU, .seconds(20))
            limits.wall = .seconds(40)
            limits.answer = mostPixels * 3 + 4096
            limits.note = 32 << 20
        case .codes:
            limits.memory = 1 << 30
            limits.cpu = min(pageCPU, .seconds(10))
            limits.wall = .seconds(40)
            limits.niceness = niceness
            limits.answer = 8 << 20
        case .ocr:
            limits.memory = 2 << 30
            limits.cpu = pageCPU * enginePages
            // These run for minutes and must not delay work that takes milliseconds.
            limits.niceness = niceness
            limits.answer = 32 << 20
        case .assemble, .report:
            limits.memory = 2 << 30
            limits.cpu = .seconds(120)
            limits.wall = .seconds(240)
            limits.fileSize = 1 << 30
            // For the packed picture of a page.
            limits.answer = stage == .assemble ? mostPixels * 3 + 4096 : 1 << 20
        }
        return limits
    }

    /// Sends a request to a new child and decodes its answer. Every failure becomes a DocumentFailure.
    func ask<Head: Decodable & Sendable>(
        _ stage: Stage, _ request: some Encodable, _ body: [UInt8] = [], files: [Int32], as head: Head.Type = Head.self,
        note: (@Sendable ([UInt8]) -> Void)? = nil
    ) async throws(DocumentFailure) -> (head: Head, body: ArraySlice<UInt8>, usage: Usage, refusedLayers: UInt32) {
        let payload = try Self.packet(request, body)
        do throws(ChildFailure) {
            let (answer, usage, refused) = try await SandboxedChild.run(
                program(stage), payload, limits: limits(stage), files: files, note: note)
            let (head, body) = try Self.opened(answer.payload, as: Head.self, usage)
            return (head, body, usage, refused)
        } catch {
            throw DocumentFailure(error)
        }
    }

    static func packet(_ request: some Encodable, _ body: some Collection<UInt8>) throws(DocumentFailure) -> [UInt8] {
        do {
            return try FramePayload.make(request, body)
        } catch {
            throw DocumentFailure(error)
        }
    }

    static func opened<Head: Decodable>(
        _ payload: [UInt8], as head: Head.Type, _ usage: Usage
    ) throws(ChildFailure) -> (Head, ArraySlice<UInt8>) {
        do throws(DocumentRefusal) {
            let (head, body) = try FramePayload.open(payload, as: head)
            return (head, body)
        } catch {
            throw ChildFailure(.misspoke, error.sentence, usage: usage)
        }
    }

    static func checked<Value>(
        _ usage: Usage, _ body: () throws(DocumentRefusal) -> Value
    ) throws(DocumentFailure) -> Value {
        do throws(DocumentRefusal) {
            return try body()
        } catch {
            throw DocumentFailure(error, usage: usage)
        }
    }
}
