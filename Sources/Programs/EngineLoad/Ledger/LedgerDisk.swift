import CommandKit
import Glibc
import Subprocesses

/// A disk for the ledger's Postgres alone, so that it can be filled: an ext4 in a sparse file, mounted through a loop device.
struct LedgerDisk: Sendable {
    let directory: String
    private let image: String
    private var ballast: String { directory + "/ballast" }

    /// nil where this process may not mount, or lacks the tools.
    init?(in parent: String) {
        image = parent + "/disk.img"
        directory = parent + "/disk"
        let file = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard geteuid() == 0, file >= 0, ftruncate(file, 8 << 30) == 0, mkdir(directory, 0o755) == 0 else {
            Glibc.close(file)
            unlink(image)
            return nil
        }
        Glibc.close(file)
        // No blocks are reserved for root, so the disk is full for everybody.
        guard Self.run(["/usr/sbin/mkfs.ext4", "-q", "-F", "-m", "0", image]),
            Self.run(["/usr/bin/mount", "-o", "loop", image, directory])
        else {
            unlink(image)
            rmdir(directory)
            return nil
        }
    }

    /// Takes all the space there is.
    func fill() {
        let file = open(ballast, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { return }
        defer { Glibc.close(file) }
        var (end, piece) = (0, 1 << 30)
        while piece >= 4096 {
            if posix_fallocate(file, end, piece) == 0 { end += piece } else { piece /= 2 }
        }
    }

    func empty() { unlink(ballast) }

    func close() {
        if !Self.run(["/usr/bin/umount", directory]) { _ = Self.run(["/usr/bin/umount", "--lazy", directory]) }
        unlink(image)
        rmdir(directory)
    }

    private static func run(_ words: [String]) -> Bool {
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { Glibc.close(nothing) }
        var child = Subprocess(words[0], Array(words.dropFirst()))
        child.environment = []
        child.descriptors = [(nothing, 0), (nothing, 1), (nothing, 2)]
        child.hasOwnGroup = false
        return (try? child.start()).flatMap(Subprocess.wait) == 0
    }
}
