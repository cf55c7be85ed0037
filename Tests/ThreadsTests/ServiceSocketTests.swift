import Testing
import Threads

@Suite struct ServiceSocketTests {
    @Test func `nobody listens without an address, or on one of another kind`() {
        #expect(ServiceSocket(environment: [:]) == nil)
        #expect(ServiceSocket(environment: ["NOTIFY_SOCKET": ""]) == nil)
        #expect(ServiceSocket(environment: ["NOTIFY_SOCKET": "vsock:2:1"]) == nil)
        #expect(ServiceSocket(environment: ["NOTIFY_SOCKET": "/" + String(repeating: "x", count: 200)]) == nil)
    }

    @Test func `the watchdog counts for the process it names`() {
        func watchdog(_ more: [String: String]) -> Duration? {
            ServiceSocket(environment: ["NOTIFY_SOCKET": "/nowhere"].merging(more) { $1 }, process: 7)?.watchdog
        }
        #expect(watchdog([:]) == nil)
        #expect(watchdog(["WATCHDOG_USEC": "60000000"]) == .seconds(60))
        #expect(watchdog(["WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "7"]) == .seconds(60))
        #expect(watchdog(["WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "8"]) == nil)
        #expect(watchdog(["WATCHDOG_USEC": "soon"]) == nil)
        #expect(watchdog(["WATCHDOG_USEC": "99999999999999999999"]) == nil)
    }

    @Test func `a manager that is gone is no reason to wait or to fail`() throws {
        let socket = try #require(ServiceSocket(environment: ["NOTIFY_SOCKET": "/nowhere/at/all"]))
        #expect(!socket.send(["READY=1"]))
        let abstract = try #require(ServiceSocket(environment: ["NOTIFY_SOCKET": "@millrace-nowhere"]))
        #expect(!abstract.send(["READY=1"]))
    }
}
