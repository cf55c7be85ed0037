import CPango
import Cage
import Frames
import Glibc
import Pages

// Sets a report in whatever script it is written in. Its fonts are the system's.

var cage = Cage()
cage.readable = [
    "/usr/share/fonts", "/usr/local/share/fonts", "/usr/share/fontconfig", "/etc/fonts", "/var/cache/fontconfig",
    "/usr/share/mime", "/usr/lib",
]
cage.startsThreads = true  // pango looks for fonts in one of its own
cage.enter()

while let bytes = Cage.request(longest: 256 << 20) {
    do throws(DocumentRefusal) {
        let report = try FramePayload.open(bytes, as: Report.self).head
        let reported = try Setter(into: Cage.Descriptor.files).set(report)
        Cage.answer(.result, try FramePayload.make(reported))
    } catch {
        Cage.fail(error.reason.rawValue, error.sentence)
    }
}
