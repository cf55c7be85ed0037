import Glibc
import Testing

@testable import MillraceCommand

private func complaint(_ path: String, limit: Int = 100) -> String? {
    do throws(FileProblem) {
        _ = try Surroundings.live().read(path, limit)
        return nil
    } catch {
        return error.complaint
    }
}

@Suite struct SurroundingsTests {
    @Test func `a file that cannot be read says why`() {
        #expect(complaint("/tmp") == "is a directory")
        #expect(complaint("/tmp/there is no such file") == "no such file or directory")
        #expect(complaint("/dev/zero") == "is larger than 100 B")
        #expect(complaint("/dev/null") == nil)
    }

    @Test func `only a directory can be written into`() {
        let live = Surroundings.live()
        #expect(live.isWritableDirectory("/tmp"))
        #expect(!live.isWritableDirectory("/dev/null"))
        #expect(!live.isWritableDirectory("/tmp/there is no such directory"))
    }

    @Test func `a full disk is noticed`() {
        let descriptor = open("/dev/full", O_WRONLY | O_CLOEXEC)
        defer { close(descriptor) }
        let sink = Sink.descriptor(descriptor)
        #expect(!sink.isTerminal && sink.columns == nil)
        sink.write("")
        #expect(sink.failure == nil)
        sink.write("x")
        #expect(sink.failure == "no space left on device")
    }
}
