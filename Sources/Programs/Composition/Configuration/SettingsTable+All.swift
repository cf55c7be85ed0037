package import CommandKit

extension Setting {
    /// Every setting there is: those of the core, of the rooms and of the faces.
    package static let all: [Setting] =
        connection + worker + supervision + Rooms.all.flatMap(\.settings) + listening + console + gateway
        + gatewayTokens + links + storing + mailing + sealing + roles + terminal
}

extension SettingsTable {
    package static let all = SettingsTable(
        Setting.all, judges: Rooms.all.compactMap(\.judge) + [{ $0.judgeBlobs() }])
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
