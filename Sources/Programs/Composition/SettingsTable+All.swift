package import CommandKit

extension Setting {
    /// Every setting there is: those of the core and of the rooms.
    package static let all = of(Rooms.all)

    /// Of a program with these rooms.
    package static func of(_ rooms: [Room]) -> [Setting] {
        connection + worker + supervision + rooms.flatMap(\.settings) + listening + tracing + links + storing + mailing
            + sealing + roles + terminal
    }
}

extension SettingsTable {
    package static let all = of(Rooms.all)

    /// Of a program with these rooms.
    package static func of(_ rooms: [Room]) -> SettingsTable {
        SettingsTable(
            Setting.of(rooms),
            judges: rooms.compactMap(\.judge) + [{ $0.judgeBlobs() }, { $0.judgeDatabases() }])
    }
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
