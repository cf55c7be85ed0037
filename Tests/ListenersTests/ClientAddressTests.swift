import Listeners
import Testing

@Suite struct ClientAddressTests {
    @Test func `the chain of proxies is read from its end`() {
        let of = ClientAddress(proxies: ["10.0.0.0/8", "2001:db8:1::/48"].compactMap { AddressRange($0) })
        for (peer, chain, client) in [
            ("203.0.113.1", ["198.51.100.1"], "203.0.113.1"), ("127.0.0.1", [], "127.0.0.1"),
            ("127.0.0.1", ["198.51.100.1"], "198.51.100.1"), ("10.1.2.3", ["198.51.100.1, 10.9.9.9"], "198.51.100.1"),
            ("10.1.2.3", ["evil", "198.51.100.1"], "198.51.100.1"), ("10.1.2.3", ["198.51.100.1, evil"], "10.1.2.3"),
            ("10.1.2.3", ["198.51.100.1, 203.0.113.5, 10.4.4.4"], "203.0.113.5"),
            ("::1", ["[2001:db8:2::1]:443"], "2001:db8:2::1"), ("2001:db8:1::5", ["198.51.100.1:80"], "198.51.100.1"),
            ("::ffff:127.0.0.1", ["2001:db8:9::1"], "2001:db8:9::1"), ("10.1.2.3", [""], "10.1.2.3"),
        ] as [(String, [String], String)] {
            #expect(of.of(peer: peer, chain) == client, "\(peer) \(chain)")
        }
        #expect(AddressRange.client("2001:db8:2:3:4:5:6:7") == AddressRange.client("2001:db8:2:3::1"))
        #expect(AddressRange.client("::ffff:198.51.100.1") == "198.51.100.1")
        for bad in ["10.0.0.0/33", "10.0.0/8", "x", "::/129", "10.0.0.0/", "10.0.0.0/-1", "1.2.3.4/8/9"] {
            #expect(AddressRange(bad) == nil, "\(bad)")
        }
    }
}
