extension TargetPolicy {
    /// Why this address can not be used, as far as can be told without asking a name server; nil: nothing speaks against it.
    package func objection(to url: String) -> TransferError? {
        do throws(TransferError) {
            try check(try Target(url))
            return nil
        } catch {
            return error
        }
    }
}
