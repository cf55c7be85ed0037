"""Every text that a user can read, from Swift, SQL and the guides, and phrases that none of them may contain."""
import pathlib
import re

# A phrase that reads as translated, and what to write instead. Words that need a second reading are looked for by deploy/check-house.
PHRASES = [
    (r"(?<!there )\b(?:is|are) no (?!longer\b|more\b|one\b|later\b|earlier\b|smaller\b|larger\b|different\b|less\b|use\b|good\b|better\b|worse\b)"
     r"(?=[a-z])", "… is not a …"),
    (r"\bdied (?:they|it|he|she) of\b", "did they die of"),
    (r"\bit was so already\b", "already set"),
    (r"\b(?:it|this) is otherwise by now\b", "this has changed in the meantime"),
    (r"\bhow large what callers\b", "input limits"),
    (r"\basks no (?:target|consent)\b", "asks for no …"),
    (r"\bcounts more\b", "wins over"),
    (r"\bwho leaves the family leaves\b", "leaving the family removes you from …"),
    (r"\bleaves the house\b", "is sent to …"),
    (r"\bend it here\b", "stop"),
    (r"\b(?:cannot|can not|could not) be told\b", "is unknown, or: cannot be read"),
    (r"\bi look after it\b", "I'll take care of it"),
    (r"\bbeing a contact of\b", "wants you as an emergency contact"),
    (r"\b(?:show|list)s? those (?:there are|that are)(?![\w ])", "shows them all"),
    (r"\bno worker lives\b|\bno living worker\b|\bworkers (?:that )?live\b", "no worker is running, running workers"),
    (r"\bwith other content\b", "with different content"),
    (r"\bis paused since\b|\bis open since\b|\bis due since\b", "has been … since"),
    (r"\bdigits and the signs\b", "digits and …"),
    (r"\b(?:key|name) stands? (?:there )?twice\b|\bshould stand here\b", "appears twice, is expected here"),
    (r"\b(?:a|one|two) (?:job|message|mail|hobby|mood|device|document|contact)s? of (?:the caller's|the person's)(?=[.,:;]|$)", "one of their …"),
    (r"\ball that is kept of\b", "everything stored about"),
    (r"\bnothing but wait\b", "just wait"),
    (r"\bneed do nothing\b", "do not need to do anything"),
    (r"\buntil (?:it is|they are) set\b(?! to)|\buntil somebody says otherwise\b", "by default"),
    (r"\bwith (?:commas|spaces|a comma) between them\b", "separated by …"),
    (r"\bcannot be taken back\b|\bnothing (?:can take|takes) (?:it|that) back\b", "cannot be undone"),
    (r"\bthe database is away\b|\bmail goes by\b|\bstands? (?:there )?alone: ", "is unreachable, goes through, cannot be combined with …"),
]
FORBIDDEN = [(re.compile(pattern, re.I), instead) for pattern, instead in PHRASES]

SWIFT = re.compile(r'//[^\n]*|/\*.*?\*/|(#*)("""|")', re.S)
SQL = re.compile(r"--[^\n]*|/\*.*?\*/|[eE]?'(?:[^'\\]|''|\\.)*'|\$\w*\$", re.S)
STATEMENT = re.compile(r"\s*(?:select|insert|update|delete|with|create|alter|drop|grant|revoke|set|begin|commit|listen|notify|lock|copy|do|"
                       r"truncate|comment|analyze|vacuum|call|explain|show|savepoint|declare|fetch)\b[\s\S]*"
                       r"\b(?:from|into|set|values|select|table|function|schema|role|on|is|as|to|role|index|default)\b|\s*(?:select|where|and|or) \w+")


def swift_literals(text):
    """Offset and text of each string literal; what an interpolation holds becomes \\(…)."""
    at = 0
    while found := SWIFT.search(text, at):
        if not found.group(2):
            at = found.end()
            continue
        hashes, mark = found.groups()
        at, start, parts = found.end(), found.start(), []
        escape = "\\" + hashes
        while at < len(text) and not text.startswith(mark + hashes, at):
            if text.startswith(escape + "(", at):
                depth, at = 1, at + len(escape) + 1
                while depth and at < len(text):
                    if inner := re.compile(r'"(?:[^"\\\n]|\\.)*"').match(text, at):
                        at = inner.end()
                        continue
                    depth += {"(": 1, ")": -1}.get(text[at], 0)
                    at += 1
                parts.append("\\(…)")
            elif text.startswith(escape, at):
                parts.append({"n": " ", "t": " ", "\n": ""}.get(text[at + len(escape)], text[at + len(escape)]))
                at += len(escape) + 1
            else:
                parts.append(text[at])
                at += 1
        at += len(mark + hashes)
        yield start, "".join(parts)


def sql_literals(text):
    for found in SQL.finditer(text):
        word = found.group(0)
        if word.endswith("'"):
            yield found.start(), word[word.index("'") + 1:-1].replace("''", "'")


def guide_paragraphs(text):
    """Prose and cells of tables, without code."""
    fenced, at = False, 0
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and line.strip():
            yield at, re.sub(r"`[^`]*`", "`…`", line)
        at += len(line) + 1


def is_read(text):
    """A sentence or a phrase, and neither a statement nor a name."""
    words = re.findall(r"(?<![\w./:$%@-])[A-Za-z][a-z']+(?![\w/:@])", text)
    return len(words) >= 3 and not STATEMENT.match(text)


READERS = [("Sources", "*.swift", swift_literals), ("sql", "*.sql", sql_literals), ("sql", "*.swift", swift_literals),
           ("deploy/guides", "*.md", guide_paragraphs), ("Sources", "*.docc/*.md", guide_paragraphs), ("README.md", None, guide_paragraphs)]


def texts(root):
    """Path, line and text of everything that a user can read."""
    for place, pattern, literals in READERS:
        paths = sorted((root / place).rglob(pattern)) if pattern else [root / place]
        for path in filter(pathlib.Path.exists, paths):
            whole = path.read_text()
            for offset, text in literals(whole):
                text = re.sub(r"\s+", " ", text).strip()
                if is_read(text):
                    yield str(path.relative_to(root)), whole.count("\n", 0, offset) + 1, text


def faults(found):
    """What the phrases forbid, a sentence each."""
    for path, line, text in found:
        for pattern, instead in FORBIDDEN:
            if hit := pattern.search(text):
                around = text[max(0, hit.start() - 40):hit.end() + 40]
                yield f"{path}:{line}: “{around}”: write “{instead}”"
