import Documents
import Glibc
import Sandbox

/// What this machine has for reading documents; nothing of it concerns the database.
extension Doctor {
    /// Also of a machine that is only an operator's: what is not there at all is not missed.
    static func judge(_ workshop: Workshop) -> Check.Result {
        let programs = Workshop.Stage.allCases.map { workshop.program($0).path }
        let missing = workshop.missing
        if programs.allSatisfy({ access($0, X_OK) != 0 }) {
            return .ok("none are read on this machine: no programs in \(workshop.children)")
        }
        return missing.isEmpty
            ? .ok("programs in \(workshop.children), models in \(workshop.models)")
            : .warning(
                "not here: \(missing.joined(separator: ", "))",
                advice: workshop.lacksPrograms
                    ? "install all programs beside each other, or set MILLRACE_CHILDREN"
                    : "install tesseract-ocr-eng, or set MILLRACE_TESSDATA")
    }

    /// A program is started and asked which layers of its cage it was refused.
    static func judgeSandbox(_ workshop: Workshop) async -> Check.Result {
        guard !workshop.lacksPrograms else { return .ok("nothing to be shut in: no programs that read documents") }
        do throws(ChildFailure) {
            let child = try await Child.start(workshop.program(.probe), limits: workshop.limits(.probe))
            let refused = child.refusedLayers
            await child.end()
            return judge(refusedLayers: refused)
        } catch {
            return .problem(
                "a program that reads documents does not start: \(error.sentence)",
                advice: "run \(workshop.program(.probe).path) by hand: a library may be missing")
        }
    }

    static func judge(refusedLayers: UInt32) -> Check.Result {
        let layers: [(UInt32, String)] = [
            (1, "limits"), (2, "another user"), (4, "no new privileges"), (8, "namespaces"), (16, "Landlock"),
            (32, "seccomp"),
        ]
        let refused = layers.filter { refusedLayers & $0.0 != 0 }.map(\.1)
        return refused.isEmpty
            ? .ok("all layers hold: \(layers.map(\.1).joined(separator: ", "))")
            : .warning(
                "the kernel refuses \(refused.joined(separator: ", ")): hostile documents are held by fewer walls",
                advice: "allow them where this runs; documents are read all the same, within the other limits")
    }
}
