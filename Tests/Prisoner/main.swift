import CCage
import ChildProtocol
import ChildSandbox
import Glibc

// A child that tries to break out, or misbehaves, as its request says. Each answer contains the kernel's error.

// From here on the kernel refuses namespaces and Landlock to this process and all below it; then it is another program.
if CommandLine.arguments.count > 2, CommandLine.arguments[1] == "refuse-layers" {
    guard millrace_cage_refuse_layers() == 0 else { exit(70) }
    var words = CommandLine.arguments.dropFirst(2).map { strdup($0) } + [nil]
    execv(CommandLine.arguments[2], &words)
    exit(71)
}
// A parent like any other, which starts one more of us, says who that is, and waits to be killed.
if CommandLine.arguments.contains("starts-another") {
    var requests: [Int32] = [0, 0]
    guard pipe(&requests) == 0 else { exit(72) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, requests[0], ChildSandbox.Descriptor.requests)
    var child = pid_t()
    let words = ["prisoner", "parent=\(getpid())", "file=1000000"].map { strdup(String($0)) } + [nil]
    // The kernel ties a child to the thread that started it.
    guard posix_spawn(&child, CommandLine.arguments[0], &actions, nil, words, environ) == 0 else { exit(73) }
    write(2, "\(child)\n", "\(child)\n".utf8.count)
    while true { pause() }
}
if CommandLine.arguments.contains("without-layers"), millrace_cage_refuse_layers() != 0 { exit(70) }
var sandbox = ChildSandbox()
sandbox.readable = CommandLine.arguments.compactMap { $0.hasPrefix("reads=") ? String($0.dropFirst(6)) : nil }
if CommandLine.arguments.contains("says-nothing") { sleep(60) }
sandbox.enter()

func sentence(_ succeeded: Bool) -> [UInt8] {
    let error = errno
    return Array((succeeded ? "done" : String(cString: strerror(error))).utf8)
}

while let bytes = ChildSandbox.request(longest: 1 << 20) {
    let words = String(decoding: bytes, as: UTF8.self).split(separator: " ", maxSplits: 1).map(String.init)
    switch words.first ?? "" {
    case "echo": ChildSandbox.answer(.result, Array((words.count > 1 ? words[1] : "").utf8))
    case "socket": ChildSandbox.answer(.result, sentence(socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) >= 0))
    case "open": ChildSandbox.answer(.result, sentence(open(words[1], O_RDONLY) >= 0))
    case "create": ChildSandbox.answer(.result, sentence(open(words[1], O_WRONLY | O_CREAT, 0o600) >= 0))
    case "fork":
        let child = fork()
        if child == 0 { _exit(0) }
        ChildSandbox.answer(.result, sentence(child > 0))
    case "exec":
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("/bin/true"), nil]
        execv("/bin/true", &arguments)
        ChildSandbox.answer(.result, sentence(false))
    case "kill": ChildSandbox.answer(.result, sentence(kill(getppid(), 0) == 0))
    case "call":
        // A system call by its number, and up to six arguments: numbers, or whom it concerns.
        var numbers = words[1].split(separator: " ").map { word in
            switch word {
            case "parent": Int(getppid())
            case "self": Int(getpid())
            default: Int(word) ?? -1
            }
        }
        let call = numbers.removeFirst()
        numbers += [Int](repeating: 0, count: 6 - numbers.count)
        ChildSandbox.answer(.result, sentence(millrace_cage_call(call, &numbers) >= 0))
    case "user": ChildSandbox.answer(.result, Array("\(getuid()) \(geteuid())".utf8))
    case "uncage":
        var rule = rlimit(rlim_cur: rlim_t.max, rlim_max: rlim_t.max)
        ChildSandbox.answer(.result, sentence(setrlimit(__rlimit_resource_t(9), &rule) == 0))
    case "environment":
        var list: [String] = []
        var entry = environ
        while let text = entry.pointee {
            list.append(String(cString: text))
            entry += 1
        }
        ChildSandbox.answer(.result, Array(list.sorted().joined(separator: "\n").utf8))
    case "descriptors":
        let open = (0..<64).filter { fcntl(Int32($0), F_GETFD) >= 0 }
        ChildSandbox.answer(.result, Array(open.map(String.init).joined(separator: " ").utf8))
    case "file":
        let text = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
            count = max(0, pread(ChildSandbox.Descriptor.files, buffer.baseAddress, 65_536, 0))
        }
        ChildSandbox.answer(.result, text)
    case "write":
        let block = [UInt8](repeating: 0x78, count: 65_536)
        for _ in 0..<(Int(words[1]) ?? 0) where write(ChildSandbox.Descriptor.files + 1, block, block.count) < 0 {
            break
        }
        ChildSandbox.answer(.result)
    case "spin": while true { _ = getpid() }
    case "sleep": sleep(600)
    case "eat":
        var all: [[UInt8]] = []
        while true { all.append([UInt8](repeating: UInt8(truncatingIfNeeded: all.count), count: 1 << 24)) }
    case "dereference": UnsafeMutablePointer<Int>(bitPattern: 8)?.pointee = 1
    case "abort": abort()
    case "exit": exit(Int32(words[1]) ?? 0)
    case "babble":
        let line = [UInt8](repeating: 0x79, count: 4096)
        for _ in 0..<50_000 { write(2, line, line.count) }
        ChildSandbox.answer(.result, Array("babbled".utf8))
    case "complain":
        write(2, "\u{1B}[31mit hurts\u{7}\n", 15)
        abort()
    case "notes":
        for number in 1...(Int(words[1]) ?? 1) { ChildSandbox.answer(.note, Array("\(number)".utf8)) }
        ChildSandbox.answer(.result)
    case "refuse": ChildSandbox.fail("malformed", "the second page is missing")
    case "oversize": ChildSandbox.answer(.result, [UInt8](repeating: 0, count: 1 << 22))
    case "lie":
        let header: [UInt8] = [4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]
        write(ChildSandbox.Descriptor.answers, header, header.count)
        sleep(600)
    case "gibberish":
        let bytes: [UInt8] = [0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4, 5]
        write(ChildSandbox.Descriptor.answers, bytes, bytes.count)
        sleep(600)
    case "half":
        let bytes: [UInt8] = [4, 0, 0, 0, 100, 0, 0, 0, 1]
        write(ChildSandbox.Descriptor.answers, bytes, bytes.count)
        exit(0)
    default: ChildSandbox.fail("unsupported", "no such request")
    }
}
