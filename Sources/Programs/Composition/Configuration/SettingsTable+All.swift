package import CommandKit

extension Setting {
    /// Every setting there is. A room that brings its own adds a list here, and no more.
    package static let all: [Setting] =
        connection + worker + supervision + mail + subscriptions + quests + webhooks + notices + checkIns + documents
        + ai + listening
        + console + gateway + gatewayTokens
        + links + storing + mailing + sealing + roles + terminal
}

extension SettingsTable {
    package static let all = SettingsTable(Setting.all, judges: [{ $0.judgeMail() }, { $0.judgeBlobs() }])
}

extension Settings {
    /// With those of every room.
    package static func load(
        given: [String: Given] = [:], surroundings: Surroundings, known: [String] = []
    ) -> Settings {
        load(given: given, surroundings: surroundings, known: known, table: .all)
    }
    package static func load(parsed: Parsed?, surroundings: Surroundings, known: [String] = []) -> Settings {
        load(parsed: parsed, surroundings: surroundings, known: known, table: .all)
    }
}
