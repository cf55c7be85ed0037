extension TargetPolicy {
    /// Why this address cannot be used, as far as is known without a name server; nil: there is no objection.
    package func objection(to url: String) -> TransferError? {
        do throws(TransferError) {
            try check(try Target(url))
            return nil
        } catch {
            return error
        }
    }
}
