import Testing

@testable import Transfers

@Suite struct NetworkAddressTests {
    static let kinds: [(String, AddressKind)] = [
        ("0.0.0.0", .unspecified), ("0.1.2.3", .reserved), ("10.0.0.0", .private), ("10.255.255.255", .private),
        ("9.255.255.255", .global), ("11.0.0.0", .global), ("100.63.255.255", .global), ("100.64.0.0", .shared),
        ("100.127.255.255", .shared), ("100.128.0.0", .global), ("127.0.0.1", .loopback),
        ("127.255.255.254", .loopback),
        ("168.63.129.16", .platform), ("168.63.129.17", .global), ("169.253.255.255", .global),
        ("169.254.169.254", .linkLocal), ("172.15.255.255", .global), ("172.16.0.1", .private),
        ("172.31.255.255", .private), ("172.32.0.0", .global), ("192.0.0.8", .reserved), ("192.0.1.0", .global),
        ("192.0.2.1", .documentation), ("192.88.99.1", .sixToFour), ("192.168.0.1", .private), ("192.169.0.0", .global),
        ("198.17.255.255", .global), ("198.18.0.1", .benchmarking), ("198.19.255.255", .benchmarking),
        ("198.20.0.0", .global), ("198.51.100.7", .documentation), ("203.0.113.7", .documentation),
        ("223.255.255.255", .global), ("224.0.0.1", .multicast), ("239.255.255.255", .multicast),
        ("240.0.0.1", .reserved),
        ("255.255.255.255", .reserved), ("1.1.1.1", .global), ("8.8.8.8", .global),
        ("::", .unspecified), ("::1", .loopback), ("::2", .compatible), ("::7f00:1", .compatible),
        ("::ffff:127.0.0.1", .mapped), ("::ffff:8.8.8.8", .mapped), ("::ffff:0:127.0.0.1", .translated),
        ("64:ff9b::7f00:1", .translated), ("64:ff9b::808:808", .translated), ("64:ff9b:1::1", .translated),
        ("64:ff9b:2::1", .reserved), ("100::1", .reserved), ("1fff::1", .reserved), ("2001::1", .teredo),
        ("2001:2::1", .benchmarking), ("2001:10::1", .reserved), ("2001:1ff::1", .reserved), ("2001:200::1", .global),
        ("2001:db8::1", .documentation), ("2001:4860:4860::8888", .global), ("2002:7f00:1::", .sixToFour),
        ("2606:4700:4700::1111", .global), ("3ffe::1", .reserved), ("3fff::1", .documentation),
        ("3fff:1000::1", .global),
        ("4000::1", .reserved), ("5f00::1", .reserved), ("fc00::1", .uniqueLocal), ("fd00:ec2::254", .uniqueLocal),
        ("fe80::1", .linkLocal), ("febf::1", .linkLocal), ("fec0::1", .siteLocal), ("ff02::1", .multicast),
    ]

    @Test(arguments: kinds)
    func `an address is what the registries say`(text: String, kind: AddressKind) throws {
        let address = try #require(IPAddress(text))
        #expect(address.kind == kind)
        #expect(IPAddress(address.description) == address)
    }

    @Test func `only canonical texts are addresses`() {
        for text in [
            "", "127.1", "0177.0.0.1", "0x7f.0.0.1", "2130706433", "127.0.0.1.", " 127.0.0.1", "1.2.3.256", "::1%lo",
            "[::1]",
        ] {
            #expect(IPAddress(text) == nil, "\(text)")
        }
    }

    @Test func `every address that leads to an IPv4 one by another way is refused`() throws {
        for tail in ["1.1.1.1", "127.0.0.1", "10.0.0.1", "169.254.169.254"] {
            for prefix in ["::", "::ffff:", "::ffff:0:", "64:ff9b::"] {
                #expect(try #require(IPAddress(prefix + tail)).kind != .global)
            }
        }
    }

    @Test func `allowed hosts are names, addresses, or plain ones with their port`() throws {
        let allowed = try AllowedHosts(" Hooks.Example , http://build.internal:8080,10.0.0.7,fd00::1 ,,")
        let yes = [
            "https://hooks.example/", "https://HOOKS.example.:9000/x", "http://build.internal:8080/",
            "https://10.0.0.7/",
            "https://[fd00::1]:44/", "https://0xa.7/",
        ]
        let no = [
            "http://hooks.example/", "http://build.internal/", "https://build.internal:8080/",
            "https://a.hooks.example/",
            "https://hooks.example.evil.example/", "https://10.0.0.8/",
        ]
        for url in yes { #expect(allowed.contains(try Target(url)), "\(url)") }
        for url in no { #expect(!allowed.contains(try Target(url)), "\(url)") }
        for text in ["a b", "https://x.example", "x.example:443", "x.example/path", "http://", "http://u@x.example"] {
            #expect(throws: TransferError.self, "\(text)") { try AllowedHosts(text) }
        }
    }
}
