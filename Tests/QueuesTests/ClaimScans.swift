import Postgres
import TestSupport

/// Jobs in lanes, and a claim on them, chosen by a seed.
struct ClaimMixture {
    struct Waiting {
        let seq: Int
        let job: Int
        let queue: Int
        let lane: Int
        let kind: Int
        /// Another claim has it.
        let isLocked: Bool
    }

    struct Place {
        let queue: Int
        let lane: Int
        let floor: Int
        let ceiling: Int
        let limit: Int
    }

    static let largest = 1_200
    static let endless = Int(Int64.max)

    let waiting: [Waiting]
    let places: [Place]
    let kinds: [Int]
    let paused: Set<Int>
    let wanted: Int
    let hasCeilings: Bool

    init(seed: Int, queues: [Int], kinds: [Int]) {
        var random = SeededRandom(seed)
        // A large one mostly has more jobs than are wanted.
        let isLarge = seed % 25 == 24
        let count = isLarge ? Self.largest - random.below(40) : random.below(40)
        let lanes = (0..<(1 + random.below(4))).map { _ in random.below(40) }
        let lockedShare = random.chance(0.5) ? isLarge ? 0.03 : 0.2 : 0
        let jobs = Array((1...Self.largest).shuffled(using: &random).prefix(count)).sorted()
        let seqs = random.chance(0.3) ? jobs : jobs.shuffled(using: &random)
        waiting = zip(jobs, seqs).map { job, seq in
            Waiting(
                seq: seq, job: job, queue: queues[random.below(queues.count)], lane: lanes[random.below(lanes.count)],
                kind: kinds[random.below(kinds.count)], isLocked: random.chance(lockedShare))
        }
        hasCeilings = random.chance(0.5)
        var places: [Place] = []
        for queue in queues {
            for lane in Set(lanes).sorted() where isLarge || random.chance(0.9) {
                let some = (seqs.randomElement(using: &random) ?? 0, seqs.randomElement(using: &random) ?? 0)
                let hasFloor = random.chance(0.5)
                places.append(
                    Place(
                        queue: queue, lane: lane, floor: hasFloor ? isLarge ? random.below(20) : some.0 : 0,
                        ceiling: hasCeilings ? isLarge ? Self.largest - random.below(20) : some.1 : Self.endless,
                        limit: isLarge ? 350 + random.below(400) : random.below(8)))
            }
        }
        self.places = places.shuffled(using: &random)
        self.kinds = kinds.filter { _ in isLarge || random.chance(0.8) }
        paused = Set(queues.filter { _ in !isLarge && random.chance(0.15) })
        wanted = isLarge ? 1_000 + random.below(20) : 1 + random.below(12)
    }

    /// What every scan must take, in this order: the places one after the other, each place by `seq`.
    var expected: [Int] {
        let taken = places.filter { !paused.contains($0.queue) }.flatMap { place in
            waiting.filter { job in
                job.queue == place.queue && job.lane == place.lane && job.seq > place.floor && job.seq <= place.ceiling
                    && kinds.contains(job.kind) && !job.isLocked
            }.sorted { $0.seq < $1.seq }.prefix(place.limit)
        }
        return taken.prefix(wanted).map(\.job)
    }

    var setUp: String {
        let rows = waiting.map { "(\($0.seq), \($0.job), \($0.queue), \($0.kind), \($0.lane))" }
        return """
            delete from millrace.ready;
            \(rows.isEmpty ? "" : "insert into millrace.ready (seq, job, queue, kind, lane) values \(rows.joined(separator: ","));")
            update millrace.queue set paused_at = case when replace(name, 'main-', '') in (
                select p.name from millrace.queue p where p.id in (\(list(paused.sorted() + [0])))) then now() end
            """
    }

    /// For a session of its own.
    var lock: String {
        "select 1 from millrace.ready where job in (\(list(waiting.filter(\.isLocked).map(\.job) + [0]))) for update"
    }

    func list(_ values: [Int]) -> String { values.map(String.init).joined(separator: ",") }
}

/// One way to take jobs from lanes.
enum ClaimScan: String, CaseIterable {
    /// `claim`: up to 999 jobs.
    case claim
    /// `claim_many`, which `claim` calls for 1000 and more.
    case many
    /// `claim_limited` where no limit applies.
    case limited
    /// `claim_limited` where jobs may have a limited key, though none has: it locks the jobs before it takes them.
    case limitedLocking
    /// The same for a claim that is large enough to try everything at once.
    case limitedAtOnce
    case claimSingly, limitedSingly, limitedLockingSingly
    /// `claim_one`, lane by lane.
    case one

    var isSingle: Bool {
        switch self {
        case .claim, .many, .limited, .limitedLocking, .limitedAtOnce: false
        case .claimSingly, .limitedSingly, .limitedLockingSingly, .one: true
        }
    }

    func fits(_ mixture: ClaimMixture) -> Bool {
        switch self {
        case .claim, .limited, .limitedLocking: mixture.wanted < 1000
        case .many: mixture.wanted >= 1000 || mixture.expected.count < mixture.wanted
        case .limitedAtOnce: mixture.wanted >= 500 || mixture.expected.count < mixture.wanted
        case .claimSingly, .limitedSingly, .limitedLockingSingly: mixture.wanted < 1000
        case .one: mixture.wanted < 1000 && !mixture.hasCeilings
        }
    }

    /// The jobs that it takes, as a select that leaves everything as it was.
    func call(_ mixture: ClaimMixture) -> String {
        func array(_ values: [Int], _ type: String) -> String { "array[\(mixture.list(values))]::\(type)[]" }
        let (function, isKeyed) =
            switch self {
            case .claim, .many, .claimSingly: ("claim", false)
            case .limited, .limitedSingly: ("claim_limited", false)
            case .limitedLocking, .limitedLockingSingly, .limitedAtOnce: ("claim_limited", true)
            case .one: ("test_claim_one", false)
            }
        let wanted = self == .many || self == .limitedAtOnce ? max(mixture.wanted, 1000) : mixture.wanted
        return """
            select j from unnest(millrace.test_taken('\(function)', \(isSingle), \(isKeyed), \(self == .limitedAtOnce),
                \(array(mixture.kinds, "int")), \(array(mixture.places.map(\.queue), "int")),
                \(array(mixture.places.map(\.lane), "int")), \(array(mixture.places.map(\.floor), "bigint")),
                \(array(mixture.places.map(\.ceiling), "bigint")), \(array(mixture.places.map(\.limit), "int")),
                \(wanted))) with ordinality t(j, o) order by o
            """
    }

    /// Whether these are the jobs that the mixture's scan must take; in order where the answer has one.
    func agrees(_ taken: [Int], _ mixture: ClaimMixture) -> Bool {
        isSingle ? taken == mixture.expected : taken.sorted() == mixture.expected.sorted()
    }

    static let functions = """
        -- As claim with one job wanted: the first place where claim_one finds a job.
        create function millrace.test_claim_one(
            session bigint, number bigint, kinds int[], queues int[], lanes int[], floors bigint[], ceilings bigint[], limits int[], wanted int,
            short int[], long int[], brief boolean, out number_out bigint, out id bigint, out queue int, out lane int
        ) returns setof record language plpgsql as $$
        begin
            for place in 1 .. coalesce(cardinality(queues), 0) loop
                continue when limits[place] < 1;
                select c.id into id from millrace.claim_one(session, number, kinds, queues[place], lanes[place], floors[place], false) c;
                if id is not null then
                    number_out := number;
                    queue := queues[place];
                    lane := lanes[place];
                    return next;
                    return;
                end if;
            end loop;
        end $$;

        -- The jobs that a function takes, all at once or one by one; everything is put back.
        create function millrace.test_taken(
            function text, singly boolean, keyed boolean, brief boolean, kinds int[], queues int[], lanes int[], floors bigint[], ceilings bigint[],
            limits int[], wanted int
        ) returns bigint[] language plpgsql as $$
        declare
            taken bigint[] := '{}';
            one record;
            number bigint := 8;
            call text := format('select c.id, c.queue, c.lane from millrace.%I(1, $8, $1, $2, $3, $4, $5, $6, $7, ''{}'', ''{}'', $9) c
                where c.id is not null', function);
        begin
            begin
                if keyed then
                    update millrace.queue q set keyed = true, main = m.id from millrace.queue m where m.name = 'main-' || q.name;
                end if;
                if not singly then
                    execute 'select array_agg(c.id) from (' || call || ') c'
                       into taken using kinds, queues, lanes, floors, ceilings, limits, wanted, number, brief;
                end if;
                while singly and cardinality(taken) < wanted loop
                    execute call into one using kinds, queues, lanes, floors, ceilings, limits, 1, number, false;
                    exit when one.id is null;
                    taken := taken || one.id;
                    number := number + 8;
                    limits := array(
                        select case when p.queue = one.queue and p.lane = one.lane then p.most - 1 else p.most end
                          from unnest(queues, lanes, limits) with ordinality p(queue, lane, most, place) order by p.place);
                end loop;
                raise exception using errcode = 'TT001';
            exception when sqlstate 'TT001' then
                null;
            end;
            return coalesce(taken, '{}');
        end $$;
        """
}
