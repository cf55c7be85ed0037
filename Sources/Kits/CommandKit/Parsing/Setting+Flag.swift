extension Setting {
    /// The flag that wins over the environment; a verb lists the ones it cares about.
    package var flag: CommandFlag {
        let arity: CommandFlag.Arity =
            switch kind {
            case .boolean, .presence: .toggle
            case .text, .path, .integer, .duration, .choice, .custom: isRepeated ? .repeated : .single
            }
        return .overriding(self, flagName, valueName, arity: arity)
    }
}
