/// What an attachment is, judged by its name and its type. A file that runs when it is opened is refused under every name, and so is a
/// name whose extension cannot be read with certainty. `mail_attachment_check` in SQL has the same lists and the same rule, for clients
/// that enqueue mail; a test compares the two.
enum AttachmentKind {
    /// The lower-case extension after the last dot; empty where there is none. Full-width letters and unusual spaces count as the plain
    /// ones, because the recipient's system may read them that way.
    static func ending(of filename: String) throws(Complaint) -> String {
        let scalars = filename.unicodeScalars
        guard let dot = scalars.lastIndex(where: isDot) else { return "" }
        let ending = String(scalars[scalars.index(after: dot)...])
        guard ending.unicodeScalars.allSatisfy({ (0x20...0x7E).contains($0.value) }) else {
            throw Complaint(
                "the attachment's name", "has an extension outside ASCII, so its kind cannot be checked")
        }
        return trim(ending[...]).lowercased()
    }

    /// The dot, and characters that Unicode maps to a dot or to something with a dot in it.
    private static func isDot(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x2E, 0x2024...0x2026, 0x2488...0x249B, 0x3002, 0x33C2, 0x33D8, 0xFE19, 0xFE30, 0xFE52, 0xFF0E, 0xFF61,
            0x1F100:
            true
        default: false
        }
    }

    /// Extensions of files that run when they are opened, on some system, or that show a page of their own. Servers refuse most of them,
    /// and some refuse the whole message.
    static let dangerous: Set<String> = [
        "ade", "adp", "apk", "app", "appcontent-ms", "appimage", "appinstaller", "application", "appref-ms", "appx",
        "appxbundle", "asp", "aspx", "asx", "bas", "bash", "bat", "bin", "cab", "cer", "cgi", "chm", "class", "cmd",
        "cnt", "com", "command", "cpl", "crt", "crx", "csh", "deb", "der", "desktop", "diagcab", "dll", "dmg", "docm",
        "dotm", "dylib", "elf", "ex", "ex_", "exe", "fileloc", "fish", "fxp", "gadget", "grp", "hlp", "hpj", "hta",
        "htc", "htm", "html", "htx", "img", "inetloc", "inf", "ins", "ipa", "iqy", "iso", "isp", "its", "jar", "jnlp",
        "js", "jse", "jsp", "ksh", "lib", "library-ms", "lnk", "mad", "maf", "mag", "mam", "maq", "mar", "mas", "mat",
        "mau", "mav", "maw", "mcf", "mda", "mdb", "mde", "mdt", "mdw", "mdz", "mht", "mhtml", "mjs", "msc", "msh",
        "msh1", "msh2", "mshxml", "msi", "msix", "msixbundle", "msp", "mst", "msu", "nsh", "one", "ops", "oqy", "osd",
        "ova", "partial", "pcd", "php", "phtml", "pif", "pkg", "pl", "plg", "potm", "ppa", "ppam", "ppsm", "pptm",
        "prf", "prg", "ps1", "ps1xml", "ps2", "ps2xml", "psc1", "psc2", "psd1", "psdm1", "psm1", "pssc", "pst", "py",
        "pyc", "pyo", "pyw", "pyz", "rdp", "reg", "rpm", "run", "scf", "scr", "sct", "settingcontent-ms", "sh", "shb",
        "shs", "shtm", "shtml", "sldm", "slk", "so", "svg", "svgz", "swf", "sys", "terminal", "theme", "tmp", "udl",
        "url", "vb", "vbe", "vbp", "vbs", "vhd", "vhdx", "vxd", "war", "webloc", "webpnp", "website", "wim", "wll",
        "workflow", "ws", "wsb", "wsc", "wsf", "wsh", "xbap", "xht", "xhtml", "xla", "xlam", "xll", "xlsb", "xlsm",
        "xltm", "xnk", "xpi", "zsh",
    ]

    /// The same, by type.
    static let dangerousTypes: Set<String> = [
        "application/bat", "application/ecmascript", "application/exe", "application/hta",
        "application/internet-shortcut", "application/java-archive", "application/javascript",
        "application/mathml+xml", "application/vnd.android.package-archive", "application/vnd.debian.binary-package",
        "application/vnd.microsoft.portable-executable", "application/vnd.ms-htmlhelp",
        "application/x-apple-diskimage", "application/x-bat", "application/x-csh", "application/x-desktop",
        "application/x-dosexec", "application/x-elf", "application/x-exe", "application/x-executable",
        "application/x-httpd-php", "application/x-iso9660-image", "application/x-java-archive",
        "application/x-java-jnlp-file", "application/x-javascript", "application/x-mach-binary",
        "application/x-mimearchive", "application/x-ms-application", "application/x-ms-installer",
        "application/x-ms-shortcut", "application/x-msdos-program", "application/x-msdownload", "application/x-msi",
        "application/x-mswinurl", "application/x-perl", "application/x-powershell", "application/x-python-code",
        "application/x-rpm", "application/x-sh", "application/x-sharedlib", "application/x-shellscript",
        "application/x-shockwave-flash", "application/x-vbs", "application/x-xpinstall", "application/xhtml+xml",
        "image/svg+xml", "text/ecmascript", "text/html", "text/javascript", "text/vbscript", "text/x-sh",
        "text/x-shellscript",
    ]
}
