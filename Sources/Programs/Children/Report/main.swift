import CPango
import ChildProtocol
import ChildSandbox
import Glibc
import Pages

// Typesets a report, or pages of the small HTML, in any script. Its fonts are the system's.

var sandbox = ChildSandbox()
sandbox.readable = [
    "/usr/share/fonts", "/usr/local/share/fonts", "/usr/share/fontconfig", "/etc/fonts", "/var/cache/fontconfig",
    "/usr/share/mime", "/usr/lib",
]
sandbox.startsThreads = true  // pango looks for fonts in one of its own
sandbox.enter()

while let bytes = ChildSandbox.request(longest: 256 << 20) {
    do throws(DocumentRefusal) {
        let (request, body) = try FramePayload.open(bytes, as: ReportRequest.self)
        let reported =
            switch request {
            case .report(let report): try Setter(into: ChildSandbox.Descriptor.files).set(report)
            case .design(let design): try PageSetter(design, body, into: ChildSandbox.Descriptor.files).draw()
            }
        ChildSandbox.answer(.result, try FramePayload.make(reported))
    } catch {
        ChildSandbox.fail(error.reason.rawValue, error.sentence)
    }
}
