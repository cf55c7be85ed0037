import Schema

/// What a migrate does to a schema, found without looking at it again: which scripts it runs, and which rooms there are afterwards.
struct MigrationPlan {
    struct Step {
        var line: String
        var migration: Script
        /// false: what it makes is there already, from before lines.
        var isRun: Bool
    }

    private(set) var steps: [Step] = []
    /// Those that are installed afterwards, in order.
    private(set) var rooms: [RoomSchema] = []
    /// Those that go, the highest first.
    private(set) var removed: [RoomSchema] = []

    var scripts: [Script] { steps.filter(\.isRun).map(\.migration) }

    init(
        _ installed: InstalledLines, rooms known: [RoomSchema], adoption: SchemaAdoption?, adding: [String],
        removing: [String]
    ) throws(Migrator.Failure) {
        for room in known where room.isFromOutside { try Self.check(room, among: known) }
        for name in adding + removing where !known.contains(where: { $0.name == name }) {
            throw .noSuchRoom(name, known: known.map(\.name))
        }
        let numbers: [String: Int]
        switch installed {
        case .none: numbers = [:]
        case .lines(let found): numbers = found
        case .oneLine(let number):
            guard let adoption else { throw .schemaBeforeLines(found: number) }
            guard number >= adoption.oldest else {
                throw .olderSchema(found: number, oldest: adoption.oldest)
            }
            guard number <= adoption.newest else {
                throw .newerSchema(found: number, known: adoption.newest, line: "core")
            }
            steps = adoption.scripts.filter { $0.number > number }
                .map { Step(line: "core", migration: $0, isRun: true) }
            numbers = Self.numbers(of: adoption, by: known)
            for room in [Schema.core] + known {
                guard let first = room.migrations.first, numbers[room.name] != nil else { continue }
                steps.append(Step(line: room.name, migration: first, isRun: false))
            }
        }
        try plan(numbers, known, adding, removing)
    }

    /// A room of another package must not replace what others have: its functions would run in their place, with the owner's rights.
    private static func check(_ room: RoomSchema, among known: [RoomSchema]) throws(Migrator.Failure) {
        let before = known.prefix { $0.name != room.name }
        for need in room.needs where !before.contains(where: { $0.name == need }) {
            throw .needIsMissing(need, room: room.name)
        }
        guard room.name != Schema.core.name, known.count(where: { $0.name == room.name }) == 1 else {
            throw .nameIsTaken("a room of this name", room: room.name, by: "another room")
        }
        let own = Set(SchemaNames.all(of: room))
        for other in [Schema.core] + known where other.name != room.name {
            guard let name = SchemaNames.all(of: other).first(where: own.contains) else { continue }
            throw .nameIsTaken("millrace.\(name)", room: room.name, by: other.name)
        }
    }

    /// The lines of a database from before there were lines. It has every room of then, also one that this program may lack.
    private static func numbers(of adoption: SchemaAdoption, by known: [RoomSchema]) -> [String: Int] {
        var numbers: [String: Int] = [:]
        for name in ["core"] + adoption.rooms { numbers[name] = 0 }
        for room in [Schema.core] + known where numbers[room.name] != nil {
            numbers[room.name] = room.migrations.first?.number
        }
        return numbers
    }

    private mutating func plan(
        _ numbers: [String: Int], _ known: [RoomSchema], _ adding: [String], _ removing: [String]
    ) throws(Migrator.Failure) {
        let unknown = numbers.keys.filter { name in name != "core" && !known.contains { $0.name == name } }
        guard unknown.isEmpty else { throw .unknownRooms(unknown.sorted()) }
        var wanted = Set(numbers.keys).union(adding)
        // From the highest down, so that what is needed by a need is found too.
        for room in known.reversed() where wanted.contains(room.name) { wanted.formUnion(room.needs) }
        for name in removing where numbers[name] == nil { throw .notInstalled(name) }
        wanted.subtract(removing)
        for name in removing {
            let others = known.filter { wanted.contains($0.name) && $0.needs.contains(name) }.map(\.name)
            guard others.isEmpty else { throw .roomIsNeeded(name, by: others) }
        }
        rooms = known.filter { wanted.contains($0.name) }
        removed = known.reversed().filter { removing.contains($0.name) }
        for room in [Schema.core] + rooms {
            let number = numbers[room.name] ?? 0
            guard number <= room.version else {
                throw .newerSchema(found: number, known: room.version, line: room.name)
            }
            steps += room.migrations.filter { $0.number > number }.map {
                Step(line: room.name, migration: $0, isRun: true)
            }
        }
    }
}
