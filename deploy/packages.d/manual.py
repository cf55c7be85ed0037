"""Writes the manual page of the program from its own help: manual.py PROGRAM VERSION DATE >millrace.1"""

import os
import re
import subprocess
import sys


def help_of(program, *words):
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "80", "NO_COLOR": "1"}
    done = subprocess.run([program, "help", *words], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"error: {program} help {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def escaped(line):
    """As text of roff: no line begins with a control character, and each hyphen can be copied."""
    line = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return "\\&" + line if line.startswith((".", "\\(aq")) else line


def verbatim(text):
    return [".nf", *(escaped(line) for line in text.strip("\n").splitlines()), ".fi"]


def listed(text, title):
    """The (name, words) lines of a section of a help text."""
    found = re.search(rf"^{title}:\n((?:[ ]{{2,}}.*\n?)+)", text, re.M)
    return re.findall(r"^  (\S+) {2,}(.*)$", found[1], re.M) if found else []


def without_common(text):
    """What each command's help ends with is said once."""
    return re.sub(r"^flags of every command:\n(?:[ ].*\n?)+\n?", "", text, flags=re.M)


def section(text, title):
    found = re.search(rf"^{title}:\n((?:[ ].*\n?)+)", text, re.M)
    return found[1] if found else ""


def main():
    program, version, date = sys.argv[1:4]
    whole = help_of(program)
    commands = listed(whole, "commands")
    if len(commands) < 10:
        sys.exit("error: the program's help lists no commands")
    lines = [
        f'.TH MILLRACE 1 "{date}" "millrace {version}" "User Commands"', ".SH NAME",
        "millrace \\- runs background jobs from a queue in Postgres", ".SH SYNOPSIS", ".B millrace", "\\fIcommand\\fR [\\fIflags\\fR]",
        ".SH DESCRIPTION", "Jobs, their history and all other state are in a Postgres database, which",
        ".B DATABASE_URL", "names. Each command prints its help with", ".BR \\-\\-help .", ".SH COMMANDS"]
    for name, words in commands:
        lines += [".TP", f".B {escaped(name)}", escaped(words)]
    lines += [".SH FLAGS OF EVERY COMMAND", *verbatim(section(whole, "flags of every command"))]
    lines += [".SH EXIT STATUS", *verbatim(section(whole, "exit codes"))]
    lines += [
        ".SH FILES", ".TP", ".I /etc/millrace/millrace.env", "The settings of the services millrace, millrace\\-gateway and millrace\\-console.",
        ".TP", ".I /usr/share/millrace/millrace.env", "The same file as it was installed."]
    for name, _ in commands:
        lines += [f'.SH "MILLRACE {escaped(name.upper())}"', *verbatim(without_common(help_of(program, name)))]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
