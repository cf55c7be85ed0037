import Testing

@testable import MillraceCommand

@Suite struct DocumentChecksTests {
    @Test func `the doctor says whom programs that read documents run as`() {
        let apart = Doctor.judge(refusedLayers: 0, user: 1_879_048_199, ours: 0)
        #expect("\(apart)".contains("limits, user 1879048199, no new privileges"), "\(apart)")
        let same = Doctor.judge(refusedLayers: 0, user: 1000, ours: 1000)
        #expect("\(same)".contains("limits, the user who starts it, no new privileges"), "\(same)")
        let refused = Doctor.judge(refusedLayers: 8 | 32, user: 1000, ours: 1000)
        #expect("\(refused)".contains("the kernel refuses namespaces, seccomp"), "\(refused)")
    }
}
