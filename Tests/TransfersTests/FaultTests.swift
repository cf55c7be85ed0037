import CCurl
import Faults
import Testing

@testable import Transfers

/// What operators and users read of a transfer that failed.
@Suite struct FaultTests {
    @Test func `the reason of a failed transfer is a sentence, without libcurl's numbers`() {
        for number in 1...UInt32(CURL_LAST.rawValue) - 1 {
            let error = TransferError(code: CURLcode(number), stage: .sent, limit: .total)
            let said = Fault(transfer: error).description
            #expect(said.firstMatch(of: /(curl|code) ?\(?[0-9]/) == nil && !said.contains("(\(number))"), "\(said)")
            #expect(said.contains(": ") && said.count > 20, "\(said)")
        }
    }
}
