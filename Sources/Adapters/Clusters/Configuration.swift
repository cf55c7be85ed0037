/// The text of `postgresql.conf`, written again at every start.
struct Configuration {
    /// Durable like a real server, sized for a developer's machine.
    static let defaults: [String: String] = [
        "fsync": "on",
        "synchronous_commit": "on",
        "shared_buffers": "128MB",
        "max_wal_size": "4GB",
        "max_connections": "200",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "%m [%p] ",
        "lc_messages": "C",
    ]

    let settings: [String: String]

    /// The caller's settings win over the defaults, but not over what this room relies on.
    init(_ chosen: [String: String], socketDirectory: String) {
        let fixed = [
            "listen_addresses": "",
            "unix_socket_directories": socketDirectory,
            "logging_collector": "off",  // the log is where we look for what went wrong
            "log_destination": "stderr",
            "update_process_title": "on",  // `Processes` reads the titles
        ]
        settings = Self.defaults.merging(chosen) { $1 }.merging(fixed) { $1 }
    }

    var text: String {
        let lines = settings.sorted { $0.key < $1.key }.map { "\($0.key) = \(Self.quoted($0.value))\n" }
        return "# Written by Millrace at every start. For settings of your own: alter system set …\n" + lines.joined()
    }

    static func quoted(_ value: String) -> String {
        var text = "'"
        for character in value {
            switch character {
            case "'": text += "''"
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            default: text.append(character)
            }
        }
        return text + "'"
    }
}
