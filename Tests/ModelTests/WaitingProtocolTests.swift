import Testing

/// Signals, waits, timeouts, rescues and cancels in every order.
@Suite struct WaitingProtocolTests {
    @Test(arguments: [false, true])
    func `no signal is lost, taken twice, or taken by a run that has lost its lease`(hasTimeout: Bool) {
        let found = WaitingModel(hasTimeout: hasTimeout).explore()
        #expect(found.failure == nil, "\(found.failure?.what ?? ""): \(found.failure?.trace ?? [])")
        #expect(found.states > 1000 && found.ends > 1)
        print("waiting model: \(found.states) states, \(found.ends) ends")
    }

    @Test func `without the turn, or without the fence, it fails`() {
        for broken in WaitingModel.Broken.allCases where broken != .nothing {
            let found = WaitingModel(broken: broken).explore()
            #expect(found.failure != nil, "\(broken)")
            print(
                "waiting model, \(broken): \(found.failure?.what ?? "nothing found"), after: \(found.failure?.trace ?? [])"
            )
        }
    }
}
