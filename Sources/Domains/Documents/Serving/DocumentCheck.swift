import FoundationEssentials
import Glibc
import RoomKit
import Sandbox

/// Checks what this machine has for reading documents; they do not concern the database.
enum DocumentCheck {
    /// For operators' machines, too: if nothing is installed there, nothing is missing.
    static func judge(_ workshop: DocumentPrograms) -> Check.Result {
        let programs = DocumentPrograms.Stage.allCases.map { workshop.program($0).path }
        let missing = workshop.missing
        if programs.allSatisfy({ access($0, X_OK) != 0 }) {
            return .ok(
                "none are read on this machine, and no media is made: the rooms documents and media need the programs that are not in \(workshop.children)"
            )
        }
        if missing.isEmpty, workshop.lacksCharacterTables {
            return .warning(
                "not here: \(workshop.characterTables)/cMap, the tables of Chinese, Japanese and Korean characters",
                advice: "install poppler-data, then retry the pages that failed with the reason engine")
        }
        return missing.isEmpty
            ? .ok(
                "programs in \(workshop.children), models in \(workshop.models): "
                    + workshop.installedModels.joined(separator: ", "))
            : .warning(
                "not here: \(missing.joined(separator: ", "))",
                advice: workshop.lacksPrograms || workshop.lacksCodes
                    ? "install all programs beside each other, or set MILLRACE_CHILDREN"
                    : "install tesseract-ocr-eng, or set MILLRACE_TESSDATA")
    }

    /// A program is started and asked which layers of its sandbox the kernel refused.
    static func judgeSandbox(_ workshop: DocumentPrograms) async -> Check.Result {
        guard !workshop.lacksPrograms else { return .ok("nothing to be shut in: no programs that read documents") }
        do throws(ChildFailure) {
            let child = try await SandboxedChild.start(workshop.program(.probe), limits: workshop.limits(.probe))
            let (refused, user) = (child.refusedLayers, child.pid.flatMap { owner(of: $0) })
            await child.end()
            return judge(refusedLayers: refused, user: user)
        } catch {
            return .problem(
                "a program that reads documents does not start: \(error.sentence)",
                advice: "run \(workshop.program(.probe).path) by hand: a library may be missing")
        }
    }

    /// The user of a process; nil when it is gone.
    private static func owner(of process: Int32) -> uid_t? {
        // The folder itself belongs to root where a process may not be inspected.
        guard let text = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8) else { return nil }
        return text.split(separator: "\n").first { $0.hasPrefix("Uid:") }?.split(separator: "\t").dropFirst().first
            .flatMap { uid_t($0) }
    }

    /// - Parameter user: the user that the program ran as. Only root can give it a separate one.
    static func judge(refusedLayers: UInt32, user: uid_t?, ours: uid_t = getuid()) -> Check.Result {
        let apart = user.map { $0 == ours ? "the user who starts it" : "user \($0)" } ?? "another user"
        let layers: [(UInt32, String)] = [
            (1, "limits"), (2, apart), (4, "no new privileges"), (8, "namespaces"), (16, "Landlock"), (32, "seccomp"),
        ]
        let refused = layers.filter { refusedLayers & $0.0 != 0 }.map(\.1)
        return refused.isEmpty
            ? .ok("all layers hold: \(layers.map(\.1).joined(separator: ", "))")
            : .warning(
                "the kernel refuses \(refused.joined(separator: ", ")): hostile documents are held by fewer walls",
                advice: "allow them where this runs; documents are read all the same, within the other limits")
    }
}
