/// Which content types belong to which extensions. Providers and filters silently drop messages where they disagree.
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
}
