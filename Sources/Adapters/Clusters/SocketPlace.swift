import Glibc

/// The place of the socket: in the cluster's directory, or, if that path is too long for a socket, in a short private one.
struct SocketPlace {
    /// `sun_path` holds 108 bytes with its closing NUL.
    static let longest = 107

    let directory: String
    let port: Int

    private var own: String { directory + "/socket" }
    private var memory: String { directory + "/socket-directory" }

    static func fits(_ directory: String, port: Int) -> Bool {
        "\(directory)/.s.PGSQL.\(port)".utf8.count <= longest
    }

    /// The place chosen by the last start.
    var current: String {
        if Self.fits(own, port: port) { return own }
        return remembered ?? own
    }

    private var remembered: String? {
        ClusterFiles.read(memory)?.split(separator: "\n").first.map(String.init)
    }

    /// Makes the place ready for `user`, private to it; the same one as before if that is still there.
    func prepare(for user: User) throws(ClusterError) -> String {
        if Self.fits(own, port: port) {
            try ClusterFiles.makePrivate(own, for: user)
            return own
        }
        if let remembered, let status = ClusterFiles.status(remembered), status.isDirectory, status.owner == user.id,
            status.permissions == 0o700
        {
            return remembered
        }
        var template = Array("/tmp/millrace-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw ClusterFiles.trouble(with: "/tmp") }
        let place = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard chown(place, user.id, user.group) == 0 else { throw ClusterFiles.trouble(with: place) }
        try ClusterFiles.replace(memory, with: place + "\n", owner: user, in: directory)
        return place
    }

    /// Removes the directory outside of the cluster's.
    func forget() {
        guard let remembered, remembered.hasPrefix("/tmp/millrace-") else { return }
        unlink("\(remembered)/.s.PGSQL.\(port)")
        unlink("\(remembered)/.s.PGSQL.\(port).lock")
        rmdir(remembered)
    }
}
