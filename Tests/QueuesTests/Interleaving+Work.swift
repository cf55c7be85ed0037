import TestSupport

/// What workers and housekeeping say.
extension Interleaving {
    enum Deed: CaseIterable {
        case claim, end, beat, watch, rescue, giveUp

        static func weights(_ random: inout SeededRandom) -> [(Deed, Int)] {
            let isFew = random.chance(0.5)
            return [(.claim, 10), (.end, 12), (.beat, 2), (.watch, 1), (.rescue, 3), (.giveUp, 1)].map { deed, weight in
                (deed, weight * (isFew ? random.pick([(1, 2), (3, 1)]) : 1))
            }
        }
    }

    mutating func openSession(_ worker: Int) async throws {
        known.sessions += 1
        let session = known.sessions
        known.session[sessions[worker].name] = session
        known.beats[session] = 0
        known.numbers[session] = 0
        try await watcher.run(
            """
            select millrace.session_open(\(session), 'worker-\(session)', 'host', 1, '0', null, array(select id from millrace.kind), 10, false)
            """)
    }

    mutating func work(by worker: Int) -> Saying? {
        let session = known.session[sessions[worker].name] ?? 0
        let mine = known.runs.indices.filter { known.runs[$0].session == session && known.runs[$0].state == .live }
        switch random.pick(deeds.filter { !mine.isEmpty || $0.0 != .end }) {
        case .claim: return claim(session, wanted: 1 + random.below(3))
        case .end:
            var ends: [(run: Int, outcome: Int)] = []
            for _ in 0...random.below(2) {
                let run = mine[random.below(mine.count)]
                let outcome = random.pick([(1, 6), (3, 3), (4, 3), (5, 1), (6, 1), (2, 1)])
                if !ends.contains(where: { $0.run == run }) { ends.append((run, outcome)) }
            }
            return finish(session, ends, by: worker)
        case .beat: return Saying(sql: "select millrace.beat(\(session), 'working', 0, 0, 0)", reading: .beat(session))
        case .watch: return watch(session, worker)
        case .rescue:
            let seen = known.seen[sessions[worker].name, default: [:]].sorted { $0.key < $1.key }
            guard !seen.isEmpty, random.chance(0.8) else { return watch(session, worker) }
            let (other, beat) = seen[seen.count - 1 - random.below(min(2, seen.count))]
            return rescue(other, beat)
        case .giveUp:
            guard let number = emptyLeases(session).first else { return nil }
            return give(session, number)
        }
    }

    func rescue(_ session: Int, _ beat: Int?) -> Saying {
        Saying(
            sql: "select leases from millrace.rescue(\(session), \(beat.map(String.init) ?? "null"))",
            reading: .rescue(session, seen: beat, beats: known.beats[session] ?? 0))
    }

    func watch(_ session: Int, _ worker: Int) -> Saying {
        Saying(
            sql: "select concat_ws(' ', session, beat) from millrace.watch(\(session))",
            reading: .watch(sessions[worker].name))
    }

    mutating func claim(_ session: Int, wanted: Int) -> Saying {
        known.numbers[session, default: 0] += 8
        let number = known.numbers[session] ?? 0
        return Saying(
            sql: """
                with lines as (select q.id, l from millrace.queue q, generate_series(0, 39) l order by l, q.id)
                select concat_ws(' ', c.id, c.number, c.kind, c.queue, coalesce(c.attempt, 0), coalesce(c.crashes, 0), coalesce(c.keyed, false)::int,
                                 coalesce(c.expired, false)::int, array_to_string(c.gates, ' '))
                  from millrace.claim_limited(\(session), \(number), array(select id from millrace.kind), array(select id from lines),
                    array(select l from lines), array(select 0::bigint from lines), array(select 9223372036854775807 from lines),
                    array(select \(wanted) from lines), \(wanted), '{}', '{}') c
                 where c.number is not null order by c.number, c.id
                """, reading: .claim(session), words: "claim \(wanted) by session \(session)")
    }

    /// A flush of ends, by what the claims have said.
    mutating func finish(_ session: Int, _ ends: [(run: Int, outcome: Int)], by worker: Int) -> Saying {
        let runs = ends.map { known.runs[$0.run] }
        for end in ends {
            known.runs[end.run].state = .ending(worker)
            touch(known.runs[end.run].job)
        }
        let numbers = Set(runs.map(\.number)).sorted()
        let open = Set(
            known.runs.indices.filter { index in
                known.runs[index].session == session && known.runs[index].isOpen && !ends.contains { $0.run == index }
            }.map { known.runs[$0].number })
        let partial = numbers.filter { open.contains($0) }
        let complete = numbers.filter { !open.contains($0) }
        let slots = runs.flatMap { run in run.gates.map { (run.number, $0) } }
        let goesOn = ends.contains { (4...6).contains($0.outcome) }
        let keyed = runs.filter(\.isKeyed).map(\.job)
        func list(_ values: [some CustomStringConvertible], _ type: String) -> String {
            "array[\(values.map(\.description).joined(separator: ","))]::\(type)[]"
        }
        let sql = """
            select unnest(millrace.finish(\(session), \(list(runs.map(\.job), "bigint")), \(list(runs.map(\.number), "bigint")),
                \(list(ends.map(\.outcome), "smallint")), \(list(runs.map(\.kind), "int")), \(list(runs.map(\.queue), "int")),
                \(list(runs.map { $0.attempt + 1 }, "smallint")), \(list(runs.map(\.crashes), "smallint")), array[5],
                \(list(partial, "bigint")), \(list(complete, "bigint")), \(list(complete.map { n in runs.count { $0.number == n } }, "int")),
                \(list(ends.map { [3, 4].contains($0.outcome) ? "'because'" : "null" }, "text")),
                \(goesOn ? list(ends.map { $0.outcome == 4 ? 1 : 0 }, "float8") : "null"),
                \(keyed.isEmpty ? "null" : list(keyed, "bigint")), \(slots.isEmpty ? "null, null, null" :
                    "\(list(slots.map(\.0), "bigint")), \(list(slots.map(\.1), "bigint")), \(list(slots.map { _ in 1 }, "int"))")))
            """
        let words = zip(runs, ends).map { "\($0.token) with \($1.outcome)" }
        return Saying(sql: sql, reading: .ends(ends.map(\.run)), words: "end \(words.joined(separator: ", "))")
    }

    /// Leases whose jobs have all ended, in other ways than by a flush.
    func emptyLeases(_ session: Int) -> [Int] {
        let runs = known.runs.filter { $0.session == session }
        return Set(runs.map(\.number)).sorted().filter { number in
            !known.given.contains("\(session) \(number)")
                && runs.allSatisfy { $0.number != number || $0.state == .over }
        }
    }

    func give(_ session: Int, _ number: Int) -> Saying {
        Saying(sql: "select millrace.leases_return(\(session), array[\(number)])", reading: .given(session, number))
    }

    /// What each worker does once a second.
    mutating func keep() -> Saying {
        let call = random.pick([
            ("heed_cancels()", 3), ("flows_check()", 6), ("flows_advance()", 8),
            ("signals_tell()", known.signals > 0 ? 4 : 0), ("gates_open()", 2),
            ("slots_sweep()", 2), ("promote(null, 5000)", 4), ("unique_expire()", 1),
            ("operation_step(most => 3)", known.operations.isEmpty ? 0 : 6),
        ])
        return Saying(sql: "select x::text from millrace.\(call) x")
    }
}
