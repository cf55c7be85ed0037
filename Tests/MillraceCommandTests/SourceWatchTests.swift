import Foundation
import Glibc
import Testing

@testable import MillraceCommand

@Suite struct SourceWatchTests {
    private func folder() throws -> URL {
        let url = FileManager.default.temporaryDirectory.appending(path: "sources-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }

    @Test func `a look differs when a file came, went or was written, and passes over what builds make`() throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        func write(_ name: String, _ text: String) throws {
            let url = folder.appending(path: name)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: url)
        }
        func look() -> SourceState { SourceState.look(at: [folder.path]) }
        try write("a/one.swift", "1")
        let first = look()
        #expect(first.files == 1 && look() == first)
        try write("a/two.swift", "2")
        let second = look()
        #expect(second != first)
        try write("a/one.swift", "11")
        #expect(look() != second)
        let third = look()
        try write(".build/debug/x.o", "made")
        // A link into its own folder ends nowhere.
        try FileManager.default.createSymbolicLink(
            atPath: folder.path + "/a/circle", withDestinationPath: folder.path)
        #expect(look() == third)
        try FileManager.default.removeItem(at: folder.appending(path: "a/one.swift"))
        #expect(look().files == 1)
    }

    @Test func `a build begins once two looks agree on what has changed`() throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        func state(_ text: String) throws -> SourceState {
            try Data(text.utf8).write(to: folder.appending(path: "f"))
            return SourceState.look(at: [folder.path])
        }
        let (one, two, three) = (try state("1"), try state("22"), try state("333"))
        var sources = SettledSources(one)
        let builds = [one, two, three, three, three].map { sources.look($0) }
        #expect(builds == [false, false, false, true, false])
        // Back before it had settled: there is nothing to build.
        let none = [one, three, three].map { sources.look($0) }
        #expect(none == [false, false, false])
    }

    @Test func `what is hidden is named by its place`() {
        let json = Array(
            #"{"n": 1, "card": "[redacted]", "list": [{"pin": "[redacted]"}, "x"], "said": "[redacted] it is"}"#.utf8)
        #expect(HiddenPaths.find(in: json, at: "args") == ["args.card", "args.list[0].pin"])
        #expect(HiddenPaths.find(in: Array(#""[redacted]""#.utf8), at: "step pay") == ["step pay"])
    }

    @Test func `how to attach is said with the process, and with what the kernel may refuse`() {
        let plain = Debugging.advice(pid: 4242, scope: 1, isRoot: true)
        #expect(plain.contains { $0.contains("lldb -p 4242") } && !plain.contains { $0.contains("ptrace_scope") })
        #expect(Debugging.advice(pid: 1, scope: 1, isRoot: false).contains { $0.contains("ptrace_scope=0") })
        #expect(Debugging.advice(pid: 1, scope: nil, isRoot: false).count == plain.count)
        #expect(!Debugging.isTraced(getpid()))
    }

    @Test func `flags of the workbench that do not fit together are misuse`() async {
        for (line, sentence) in [
            (["--build", "true"], "--build needs --with"), (["--replay", "1"], "--replay needs --with"),
            (["--with", "/nowhere/program"], "there is no program /nowhere/program"),
            (["--with", "/bin/true", "--debugger"], "--debugger is for --replay"),
            (["--with", "/bin/true", "--watch", "/nowhere"], "there is no /nowhere"),
        ] {
            let capture = Capture()
            let code = await Application.run(
                arguments: ["dev", "--database-url", "postgresql:///unused"] + line, surroundings: .fake(),
                console: capture.console)
            #expect(code == .misused && capture.errors.contains(sentence), "\(line): \(capture.errors)")
        }
    }
}
