import Glibc

/// The bytes of a path that came from the command line. A file's name is bytes, and need not be text: in a String, what is no UTF-8 has
/// become U+FFFD, which names another file.
package enum PathBytes {
    /// - Parameter arguments: the command line as it was given.
    package static func of(_ path: String, arguments: [[UInt8]] = commandLine) -> [CChar] {
        guard path.contains("\u{FFFD}") else { return Array(path.utf8CString) }
        for argument in arguments {
            // Alone, behind a flag's name, or as an address.
            let equals = argument.firstIndex(of: UInt8(ascii: "=")).map { argument[($0 + 1)...] }
            let address = argument.starts(with: "file:".utf8) ? argument.dropFirst(5) : nil
            for some in [argument[...], equals, address].compactMap({ $0 })
            where String(decoding: some, as: UTF8.self) == path {
                return some.map { CChar(bitPattern: $0) } + [0]
            }
        }
        return Array(path.utf8CString)
    }

    package static var commandLine: [[UInt8]] {
        (0..<Int(CommandLine.argc)).compactMap { index in
            CommandLine.unsafeArgv[index].map { text in
                Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
            }
        }
    }
}
