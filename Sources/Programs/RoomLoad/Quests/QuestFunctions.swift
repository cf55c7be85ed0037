import CommandKit
import LoadKit
import Postgres
import Synchronization

/// A flag that is set once and can be read from everywhere.
final class Signalled: Sendable {
    private let state = Mutex(false)

    var isFired: Bool { state.withLock { $0 } }

    func fire() { state.withLock { $0 = true } }
}

/// The time of each of an app's functions, one call after the other, each for another family.
struct QuestFunctions {
    var calls: Int
    var families: Int
    var wave: Int

    private static let statements: [(name: String, sql: SQL)] = [
        ("quest_today", "select millrace.quest_today($1, $1 || '-a')"),
        ("quest_complete", "select millrace.quest_complete($1, $1 || '-a', actor => $1 || '-a')"),
        ("mood_log", "select millrace.mood_log($1 || '-a', 'happy', actor => $1 || '-a')"),
        ("moods", "select millrace.moods($1 || '-a', actor => $1 || '-b')"),
        (
            "mood_delete",
            "select millrace.mood_delete(m.id, $1 || '-a') from millrace.moods($1 || '-a', actor => $1 || '-a') m limit 1"
        ),
        ("hobby_save", "select millrace.hobby_save($1 || '-a', 'Chess', 'Bishops go aslant', actor => $1 || '-a')"),
        ("hobbies", "select millrace.hobbies($1, actor => $1 || '-b')"),
        (
            "hobby_seen",
            "select millrace.hobby_seen(h.id, $1 || '-b', $1 || '-b') from millrace.hobbies($1, actor => $1 || '-b') h"
        ),
        ("cards", "select millrace.cards($1, actor => $1 || '-b')"),
        (
            "card_answer",
            "select millrace.card_answer(c.id, $1 || '-b', 'chess', actor => $1 || '-b') from millrace.cards($1, actor => $1 || '-b') c"
        ),
        ("points", "select millrace.points($1 || '-a', $1 || '-a')"),
        ("streak", "select millrace.streak($1 || '-a', $1 || '-a')"),
        ("weekly_stats", "select millrace.weekly_stats($1 || '-a', actor => $1 || '-a')"),
        ("quest_history", "select millrace.quest_history($1 || '-a', actor => $1 || '-a')"),
        ("quest_undo", "select millrace.quest_undo($1, $1 || '-a', actor => $1 || '-a')"),
        ("points_award", "select millrace.points_award($1 || '-a', 1, 'load', 'load')"),
        ("family_zone", "select millrace.family_zone($1, 'Asia/Tokyo')"),
        ("family_leave", "select millrace.family_leave($1, $1 || '-c')"),
        ("family_join", "select millrace.family_join($1, $1 || '-c', 'teen')"),
        ("family_create", "select millrace.family_create($1 || '-new', 'Asia/Tokyo')"),
        ("person_erase", "select millrace.person_erase($1 || '-b', $1 || '-b')"),
    ]

    func measure(on connection: Connection) async throws(PostgresError) -> [(name: String, median: Double)] {
        var found: [(name: String, median: Double)] = []
        for (name, sql) in Self.statements {
            var times: [Double] = []
            for n in 0..<calls {
                let family = "load-\(1 + (n &* 104_729) % (families - 1))"
                let began = ContinuousClock.now
                try await connection.execute(sql, [.text(family)])
                times.append(began.duration(to: .now) / .milliseconds(1))
            }
            found.append((name, percentile(times.sorted(), 0.5)))
        }
        return found
    }
}
