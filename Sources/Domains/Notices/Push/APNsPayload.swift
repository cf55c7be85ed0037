import JSON

/// The payload for a device: at most 4096 bytes, so the least important parts are dropped first, and then the end of the text.
struct APNsPayload {
    static let most = 4096
    let bytes: [UInt8]

    init(_ sending: Sending, _ words: NoticeWords, isCritical: Bool) {
        var body = words.body
        var facts = sending.data.texts
        while true {
            let text = Self.text(sending, words, body: body, facts: facts, isCritical: isCritical)
            if text.utf8.count <= Self.most || (facts.isEmpty && body.isEmpty) {
                bytes = Array(text.utf8)
                return
            }
            if facts.isEmpty {
                body = String(body.unicodeScalars.prefix(body.unicodeScalars.count / 2))
            } else {
                facts = [:]
            }
        }
    }

    private static func text(
        _ sending: Sending, _ words: NoticeWords, body: String, facts: [String: String], isCritical: Bool
    ) -> String {
        let alert = JSONText.object([
            ("title", JSONText.quoted(words.title)), ("body", JSONText.quoted(body)),
        ])
        let loud = sending.isAlarm && isCritical
        var aps = [
            ("alert", alert),
            (
                "sound",
                loud
                    ? JSONText.object([("critical", "1"), ("name", "\"default\""), ("volume", "1.0")])
                    : "\"default\""
            ),
        ]
        if sending.isAlarm {
            aps.append(("interruption-level", loud ? "\"critical\"" : "\"time-sensitive\""))
            aps.append(("relevance-score", "1.0"))
        }
        var members = [
            ("aps", JSONText.object(aps)), ("notice", JSONText.quoted(sending.id)),
            ("kind", JSONText.quoted(sending.kind)),
        ]
        if let link = words.link { members.append(("url", JSONText.quoted(link))) }
        if !facts.isEmpty {
            members.append(
                (
                    "data",
                    JSONText.object(facts.sorted { $0.key < $1.key }.map { ($0.key, JSONText.quoted($0.value)) })
                ))
        }
        return JSONText.object(members)
    }
}
