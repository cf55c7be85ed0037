import CPango
import ChildProtocol
import ChildSandbox
import Glibc
import Pages

// Typesets a report in any script. Its fonts are the system's.

var sandbox = ChildSandbox()
sandbox.readable = [
    "/usr/share/fonts", "/usr/local/share/fonts", "/usr/share/fontconfig", "/etc/fonts", "/var/cache/fontconfig",
    "/usr/share/mime", "/usr/lib",
]
sandbox.startsThreads = true  // pango looks for fonts in one of its own
sandbox.enter()

while let bytes = ChildSandbox.request(longest: 256 << 20) {
    do throws(DocumentRefusal) {
        let report = try FramePayload.open(bytes, as: Report.self).head
        let reported = try Setter(into: ChildSandbox.Descriptor.files).set(report)
        ChildSandbox.answer(.result, try FramePayload.make(reported))
    } catch {
        ChildSandbox.fail(error.reason.rawValue, error.sentence)
    }
}
