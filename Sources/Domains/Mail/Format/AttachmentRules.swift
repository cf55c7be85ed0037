extension Letter.Attachment {
    /// Throws the reason why the attachment must not be sent.
    package func check() throws(Complaint) {
        let part = "the attachment's name"
        guard !filename.isEmpty, filename.utf8.count <= 255 else { throw Complaint(part, "must have 1 to 255 bytes") }
        for scalar in filename.unicodeScalars {
            guard scalar.properties.generalCategory != .control, !DisplayName.isInvisible(scalar) else {
                throw Complaint(part, "holds a control character, or one that reverses or hides text")
            }
        }
        guard !filename.contains(where: { "/\\:*?\"<>|".contains($0) }) else {
            throw Complaint(part, "holds a path, or a character that file systems refuse")
        }
        guard filename != ".", filename != "..", !filename.hasSuffix("."), !filename.hasSuffix(" "),
            !filename.hasPrefix(" ")
        else { throw Complaint(part, "begins or ends with a space, or ends with a dot") }
        let ending = try AttachmentKind.ending(of: filename)
        guard
            !AttachmentKind.dangerous.contains(
                ending.filter { "a"..."z" ~= $0 || "0"..."9" ~= $0 || "-_".contains($0) })
        else {
            throw Complaint(
                "the attachment", "is of a kind that runs when it is opened (.\(ending)): send a link to it instead")
        }
        try checkType(ending)
        if let contentID {
            let isFit = contentID.utf8.allSatisfy { isLetterOrDigit($0) || "._-+@".utf8.contains($0) }
            guard isFit, (1...128).contains(contentID.utf8.count) else {
                throw Complaint(
                    "the attachment's content id", "may hold letters, digits and . _ - + @, 128 of them at most")
            }
        }
        guard size >= 0 else { throw Complaint("the attachment", "has no size") }
    }

    private func checkType(_ ending: String) throws(Complaint) {
        let part = "the attachment's content type"
        let pieces = contentType.split(separator: ";", omittingEmptySubsequences: false).map { trim($0) }
        let type = (pieces.first ?? "").lowercased()
        let halves = type.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let isFit =
            halves.count == 2 && contentType.utf8.count <= 200
            && halves.allSatisfy {
                !$0.isEmpty && $0.allSatisfy { isLetterOrDigit($0) || "!#$&-^_.+".utf8.contains($0) }
            }
        guard isFit else { throw Complaint(part, "must be of the form type/subtype") }
        for piece in pieces.dropFirst() {
            let sides = piece.split(separator: "=", omittingEmptySubsequences: false)
            guard sides.count == 2,
                sides.allSatisfy({ side in
                    !side.isEmpty && side.utf8.allSatisfy { isLetterOrDigit($0) || "-_.".utf8.contains($0) }
                }), !["name", "boundary"].contains(sides[0].lowercased())
            else { throw Complaint(part, "has a parameter that is not allowed") }
        }
        guard !AttachmentKind.dangerousTypes.contains(type) else {
            throw Complaint(
                "the attachment", "is of a kind that runs when it is opened (\(type)): send a link to it instead")
        }
        guard !type.hasPrefix("multipart/"), !type.hasPrefix("message/") else {
            throw Complaint(part, "is that of a message or of a part of one")
        }
        let allowed = ContentTypes.byExtension[ending]
        let agrees = allowed.map { $0.contains(type) } ?? !ContentTypes.known.contains(type)
        guard agrees else {
            throw Complaint(
                part,
                allowed.map { "does not match .\(ending), which is \($0[0])" }
                    ?? "does not match the name's extension; mail servers silently drop such messages")
        }
    }
}
