import Glibc

/// A file that was handed over, mapped into memory. The mapping stays for the process's life.
package struct File: Sendable {
    package let bytes: Bytes

    package init(_ descriptor: Int32) throws(DocumentRefusal) {
        var about = stat()
        guard fstat(descriptor, &about) == 0, about.st_size >= 0 else {
            throw DocumentRefusal(.internal, "the file was not handed over")
        }
        guard about.st_size > 0 else {
            bytes = Bytes(UnsafeRawBufferPointer(start: nil, count: 0))
            return
        }
        let size = Int(about.st_size)
        guard let memory = mmap(nil, size, PROT_READ, MAP_PRIVATE, descriptor, 0), memory != MAP_FAILED else {
            throw DocumentRefusal(errno == ENOMEM ? .memory : .internal, "the file could not be mapped")
        }
        bytes = Bytes(UnsafeRawBufferPointer(start: memory, count: size))
    }

    /// Frees the cached parts of the file. The next access reads them again.
    package func release() {
        guard let start = bytes.memory.baseAddress else { return }
        madvise(UnsafeMutableRawPointer(mutating: start), bytes.count, MADV_DONTNEED)
    }
}
