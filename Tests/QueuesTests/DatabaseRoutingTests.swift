import MillraceQueues
import Testing

@Suite struct DatabaseRoutingTests {
    /// Another program may route as we do, so these never change. Python: max(sorted(names), key=lambda n:
    /// int.from_bytes(sha256(n.encode() + b'\0' + key.encode()).digest()[:8], 'big')).
    @Test(arguments: [
        ("", "us", "ap"), ("acme", "eu", "eu"), ("beta", "eu", "eu"), ("ada", "eu", "eu"), ("42", "us", "ap"),
        ("größe", "us", "us"), ("家族", "eu", "ap"), ("tenant-000001", "eu", "eu"),
    ])
    func `a key has the same database in every process and version`(key: String, ofTwo: String, ofThree: String) {
        let routing = DatabaseRouting()
        #expect(routing.database(of: key, among: ["eu", "us"]) == ofTwo)
        #expect(routing.database(of: key, among: ["us", "eu", "ap"]) == ofThree)
        #expect(routing.database(of: key, among: ["ap", "us", "eu"]) == ofThree, "the order does not matter")
    }

    @Test func `the weight is the first eight bytes of the hash`() {
        #expect(DatabaseRouting.weight(of: "eu", for: "acme") == 0xd350_567c_4abc_ab43)
    }

    @Test func `with another database only the keys that it gets are elsewhere`() {
        let routing = DatabaseRouting()
        var counts: [String: Int] = [:]
        for key in (0..<3000).map(String.init) {
            let before = routing.database(of: key, among: ["eu", "us"])
            let after = routing.database(of: key, among: ["ap", "eu", "us"])
            #expect(after == before || after == "ap")
            counts[after ?? "", default: 0] += 1
        }
        #expect(counts == ["us": 1018, "ap": 992, "eu": 990])
    }

    @Test func `an override decides, by the bytes of the key, and leads to a database that is there`() {
        let routing = DatabaseRouting(overrides: ["acme": "us", "gr\u{f6}\u{df}e": "eu", "gone": "ap"])
        #expect(routing.database(of: "acme", among: ["eu", "us"]) == "us")
        #expect(routing.database(of: "gr\u{f6}\u{df}e", among: ["eu", "us"]) == "eu")
        #expect(
            routing.database(of: "gro\u{308}\u{df}e", among: ["eu", "us"])
                == DatabaseRouting().database(of: "gro\u{308}\u{df}e", among: ["eu", "us"]))
        #expect(routing.database(of: "gone", among: ["eu", "us"]) == nil)
        #expect(routing.database(of: "acme", among: []) == nil)
    }
}
