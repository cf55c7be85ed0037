/// Which content types go with which extensions. Providers and filters drop, without a word, what disagrees.
enum ContentTypes {
    static let byExtension: [String: [String]] = [
        "txt": ["text/plain"], "log": ["text/plain"], "md": ["text/markdown", "text/plain"],
        "csv": ["text/csv", "text/plain"], "tsv": ["text/tab-separated-values", "text/plain"],
        "htm": ["text/html"], "html": ["text/html"], "css": ["text/css"], "rtf": ["application/rtf", "text/rtf"],
        "xml": ["application/xml", "text/xml"], "json": ["application/json"],
        "yaml": ["application/yaml", "text/yaml"], "yml": ["application/yaml", "text/yaml"],
        "ics": ["text/calendar"], "vcf": ["text/vcard", "text/x-vcard"],
        "pdf": ["application/pdf"], "ps": ["application/postscript"], "epub": ["application/epub+zip"],
        "jpg": ["image/jpeg"], "jpeg": ["image/jpeg"], "png": ["image/png"], "gif": ["image/gif"],
        "webp": ["image/webp"], "avif": ["image/avif"], "heic": ["image/heic"], "heif": ["image/heif"],
        "tif": ["image/tiff"], "tiff": ["image/tiff"], "bmp": ["image/bmp"], "svg": ["image/svg+xml"],
        "ico": ["image/vnd.microsoft.icon", "image/x-icon"],
        "mp3": ["audio/mpeg"], "m4a": ["audio/mp4", "audio/x-m4a"], "wav": ["audio/wav", "audio/x-wav"],
        "ogg": ["audio/ogg", "application/ogg"], "flac": ["audio/flac"], "aac": ["audio/aac"],
        "mp4": ["video/mp4"], "mov": ["video/quicktime"], "webm": ["video/webm", "audio/webm"],
        "avi": ["video/x-msvideo"], "mpeg": ["video/mpeg"],
        "zip": ["application/zip", "application/x-zip-compressed"], "gz": ["application/gzip", "application/x-gzip"],
        "tar": ["application/x-tar"], "7z": ["application/x-7z-compressed"], "bz2": ["application/x-bzip2"],
        "doc": ["application/msword"], "xls": ["application/vnd.ms-excel"], "ppt": ["application/vnd.ms-powerpoint"],
        "docx": ["application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
        "xlsx": ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
        "pptx": ["application/vnd.openxmlformats-officedocument.presentationml.presentation"],
        "odt": ["application/vnd.oasis.opendocument.text"], "ods": ["application/vnd.oasis.opendocument.spreadsheet"],
        "odp": ["application/vnd.oasis.opendocument.presentation"], "pages": ["application/vnd.apple.pages"],
        "numbers": ["application/vnd.apple.numbers"], "key": ["application/vnd.apple.keynote"],
        "p7s": ["application/pkcs7-signature", "application/x-pkcs7-signature"],
        "asc": ["application/pgp-signature", "application/pgp-keys", "text/plain"],
    ]

    static let known = Set(byExtension.values.joined())

    /// What runs when it is opened, on one system or another. Servers refuse most of it, and some the whole message.
    static let dangerous: Set<String> = [
        "ade", "adp", "apk", "app", "appcontent-ms", "application", "appref-ms", "appx", "asp", "aspx", "asx", "bas",
        "bat", "bin", "cab", "cer", "chm", "class", "cmd", "cnt", "com", "command", "cpl", "crt", "csh", "deb", "der",
        "diagcab", "dll", "dmg", "docm", "dotm", "ex", "exe", "ex_", "fxp", "gadget", "grp", "hlp", "hpj", "hta", "htc",
        "img", "inf", "ins", "iso", "isp", "its", "jar", "jnlp", "js", "jse", "ksh", "lib", "library-ms", "lnk", "mad",
        "maf", "mag", "mam", "maq", "mar", "mas", "mat", "mau", "mav", "maw", "mcf", "mda", "mdb", "mde", "mdt", "mdw",
        "mdz", "msc", "msh", "msh1", "msh2", "mshxml", "msi", "msix", "msp", "mst", "msu", "nsh", "one", "ops", "osd",
        "pcd", "pif", "pkg", "pl", "plg", "potm", "ppam", "ppsm", "pptm", "prf", "prg", "ps1", "ps1xml", "ps2",
        "ps2xml", "psc1", "psc2", "psd1", "psdm1", "pst", "pssc", "py", "pyc", "pyo", "pyw", "pyz", "reg", "rpm", "scf",
        "scr", "sct", "settingcontent-ms", "sh", "shb", "shs", "so", "swf", "sys", "terminal", "theme", "tmp", "udl",
        "url", "vb", "vbe", "vbp", "vbs", "vhd", "vhdx", "vxd", "webpnp", "website", "wim", "workflow", "ws", "wsb",
        "wsc", "wsf", "wsh", "xbap", "xlam", "xll", "xlsm", "xltm", "xnk",
    ]
}
