extension Command {
    static let completions = Command(
        ["completions"],
        summary: "Print a script that completes millrace's words in your shell",
        arguments: [Argument("shell", .one, .choice(["bash", "zsh", "fish"]), help: "the shell to write for")],
        examples: [
            Example("source <(millrace completions bash)", "for this bash; in ~/.bashrc for every one"),
            Example("millrace completions zsh > ~/.zfunc/_millrace", "zsh, with ~/.zfunc in its fpath"),
            Example("millrace completions fish > ~/.config/fish/completions/millrace.fish", "fish"),
        ],
        settings: .unused
    ) { invocation in
        let script: String
        switch invocation.parsed.string("shell") {
        case "bash": script = Completions(tree: invocation.tree).bash
        case "zsh": script = Completions(tree: invocation.tree).zsh
        default: script = Completions(tree: invocation.tree).fish
        }
        invocation.console.output.write(script)
        return .done
    }
}
