package import JSON
import MillraceJobs
package import SettingsKit

extension Setting {
    package static let quests: [Setting] = [
        questsOn, questGrace, questMoodBuffer, questReminderHour, questQuiet, questPoints, questCatalogue,
    ]

    package static let questsOn = Setting(
        "quests", .boolean, fallback: "on",
        help: "Roll families over their midnights, if there are families; off leaves that to other workers.")
    package static let questGrace = Setting(
        "quest-grace", .duration(.zero ... .seconds(82_800)), valueName: "DURATION",
        help: "How long after a day's end work of that day still counts; 6h by default.")
    package static let questMoodBuffer = Setting(
        "quest-mood-buffer", .duration(.zero ... .seconds(86_400)), valueName: "DURATION",
        help: "How long a mood stays private before others see it; 0s by default.")
    package static let questReminderHour = Setting(
        "quest-reminder-hour", .integer(0...23), valueName: "HOUR",
        help:
            "When those who have logged no mood are reminded, by their family's clock; 19 by default."
    )
    package static let questQuiet = Setting(
        "quest-quiet",
        .custom(expects: "hours such as 21:00-07:00, or off") { text in
            quietHours(text) == nil ? "takes hours such as 21:00-07:00, or off" : nil
        }, valueName: "FROM-TO",
        help: "The quiet hours without notices, by the family's clock; 21:00-07:00 by default.")
    package static let questPoints = Setting(
        "quest-points",
        .custom(expects: "awards such as hobby=5,card=2,quest=1,streak=10,seen=1") { text in
            awards(text) == nil ? "takes awards of hobby, card, quest, streak and seen, such as hobby=5,seen=2" : nil
        }, valueName: "NAME=POINTS", help: "What is awarded from now on, for the named kinds.")
    package static let questCatalogue = Setting(
        "quest-catalogue", .path, valueName: "FILE",
        help:
            #"The quests that follow each other, as JSON: [{"kind": "share_hobby|daily_mood|family_chat", "title": "…", "id": "…", "description": "…"}, …]."#
    )

    package static func quietHours(_ text: String) -> (from: String, to: String)? {
        if text == "off" { return ("00:00", "00:00") }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        func isTime(_ text: String) -> Bool {
            let numbers = text.split(separator: ":", omittingEmptySubsequences: false)
            return numbers.count == 2
                && numbers.allSatisfy { $0.count == 2 && $0.utf8.allSatisfy { (48...57).contains($0) } }
                && (0..<24).contains(Int(numbers[0]) ?? -1) && (0..<60).contains(Int(numbers[1]) ?? -1)
        }
        guard parts.count == 2, isTime(parts[0]), isTime(parts[1]) else { return nil }
        return (parts[0], parts[1])
    }

    package static func awards(_ text: String) -> [(name: String, points: Int)]? {
        var found: [(name: String, points: Int)] = []
        for item in text.split(separator: ",", omittingEmptySubsequences: false) {
            let parts = item.split(separator: "=", omittingEmptySubsequences: false)
            guard parts.count == 2, ["hobby", "card", "quest", "streak", "seen"].contains(parts[0]),
                let points = Int(parts[1]), (0...100_000).contains(points),
                !found.contains(where: { $0.name == parts[0] })
            else { return nil }
            found.append((String(parts[0]), points))
        }
        return found
    }
}

extension Settings {
    package var runsQuests: Bool { isOn(.questsOn) }

    /// The rules that are set here; the others stay as they are in the database, where all callers see them.
    ///
    /// - Parameter catalogue: the content of the file, as JSON.
    package func questRules(catalogue: JSONValue?) -> JSONValue? {
        var members: [JSONValue.Member] = []
        func add(_ key: String, _ value: JSONValue) { members.append(.init(key: key, value: value)) }
        func seconds(_ setting: Setting) -> JSONValue? {
            text(setting) == nil ? nil : .string("\(duration(setting).components.seconds) seconds")
        }
        if let grace = seconds(.questGrace) { add("grace", grace) }
        if let buffer = seconds(.questMoodBuffer) { add("mood_buffer", buffer) }
        if text(.questReminderHour) != nil { add("reminder_hour", .int(integer(.questReminderHour))) }
        if let quiet = text(.questQuiet).flatMap(Setting.quietHours) {
            add("quiet_from", .string(quiet.from))
            add("quiet_to", .string(quiet.to))
        }
        for award in text(.questPoints).flatMap(Setting.awards) ?? [] { add(award.name, .int(award.points)) }
        if let catalogue { add("catalogue", catalogue) }
        return members.isEmpty ? nil : .object(members)
    }
}
