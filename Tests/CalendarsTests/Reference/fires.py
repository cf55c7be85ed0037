"""Says when cron expressions fire, worked out from Python's own zone data, one wall time after the other.

Written to be obvious, not fast, and to share nothing with the Swift: expressions are sets of numbers, days are walked one by one,
zones are asked through zoneinfo. Arguments: first year, number of years, then the zones on standard input, one a line.

For each zone, lines with tabs in between:
    zone     <name>
    same     <name>   an earlier zone, whose file has the same bytes; else
    window   <expression>  <from>  <until>  <fires, space separated>      from < fire <= until
    decade   <expression>  <from>  <until>  <count>  <sum>                sum: of (index + 1) * fire, modulo 2**61 - 1
"""

import calendar
import datetime as dt
import os
import sys
import zoneinfo

EPOCH = dt.datetime(1970, 1, 1)
DAY = 86_400
STEP = 300  # every expression here, every offset and every change is a multiple of five minutes, which is asserted

NAMES = {n: i for i, n in enumerate("sun mon tue wed thu fri sat".split())}


class Expression:
    """Five fields; what is needed here and no more."""

    def __init__(self, text):
        self.text = text
        minute, hour, dom, month, dow = text.split()
        self.minutes = sorted(self.numbers(minute, 0, 59))
        self.hours = sorted(self.numbers(hour, 0, 23))
        self.months = self.numbers(month, 1, 12)
        self.dom, self.dow = dom, dow
        self.doms = self.numbers(dom, 1, 31) if dom not in ("L",) else set()
        self.dows = {n % 7 for n in self.numbers(dow, 0, 7)} if not dow.endswith("L") and "#" not in dow else set()
        self.times = [(h, m) for h in self.hours for m in self.minutes]
        self.every_hour = len(self.hours) == 24
        self.known_days = {}
        assert all(m % 5 == 0 for m in self.minutes), text

    @staticmethod
    def numbers(text, low, high):
        found = set()
        for item in text.split(","):
            item, _, step = item.partition("/")
            if item == "*":
                a, b = low, high
            else:
                a, _, b = item.partition("-")
                a = NAMES.get(a, a)
                b = NAMES.get(b, b) or a
            found.update(range(int(a), int(b) + 1, int(step or 1)))
        return found

    def matches(self, day):
        if day not in self.known_days:
            self.known_days[day] = self.matches_day(day)
        return self.known_days[day]

    def matches_day(self, day):
        if day.month not in self.months:
            return False
        length = calendar.monthrange(day.year, day.month)[1]
        in_month = day.day == length if self.dom == "L" else day.day in self.doms
        weekday = day.isoweekday() % 7
        if self.dow.endswith("L"):
            in_week = weekday == NAMES[self.dow[:3]] and day.day + 7 > length
        elif "#" in self.dow:
            name, n = self.dow.split("#")
            in_week = weekday == NAMES[name] and (day.day - 1) // 7 + 1 == int(n)
        else:
            in_week = weekday in self.dows
        if self.dom == "*":
            return in_week
        if self.dow == "*":
            return in_month
        return in_month or in_week


def wall(zone, instant):
    return dt.datetime.fromtimestamp(instant, zone).replace(tzinfo=None)


def offset(zone, instant):
    return round(dt.datetime.fromtimestamp(instant, zone).utcoffset().total_seconds())


def changes(zone, begin, end):
    """Instants of a new offset, found by looking twice a day and then closer. Two changes nearer than that would be missed."""
    found = []
    before = offset(zone, begin)
    for instant in range(begin, end, DAY // 2):
        now = offset(zone, instant)
        if now != before:
            low, high = instant - DAY // 2, instant
            while high - low > 1:
                middle = (low + high) // 2
                if offset(zone, middle) == before:
                    low = middle
                else:
                    high = middle
            found.append((high, before, now))
            before = now
    return found


def instant_of(zone, naive, jumps):
    """When the clock first shows this wall time, or the first instant behind it where it is skipped."""
    first = naive.replace(tzinfo=zone, fold=0)
    instant = round(first.timestamp())
    if wall(zone, instant) == naive:
        return instant
    number = round((naive - EPOCH).total_seconds())
    gaps = [at for at, old, new in jumps if at + old <= number < at + new]
    assert len(gaps) == 1, (zone, naive, gaps)
    return gaps[0]


def fires(zone, expression, begin, end, jumps):
    """All fires with begin < fire <= end, in order, none twice."""
    found = set()
    if expression.every_hour:
        for instant in range(begin - begin % STEP, end + 1, STEP):
            shown = wall(zone, instant)
            if shown.minute in expression.minutes and expression.matches(shown.date()):
                found.add(instant)
    else:
        day = wall(zone, begin - 2 * DAY).date()
        last = wall(zone, end + 2 * DAY).date()
        while day <= last:
            if expression.matches(day):
                for hour, minute in expression.times:
                    found.add(instant_of(zone, dt.datetime(day.year, day.month, day.day, hour, minute), jumps))
            day += dt.timedelta(days=1)
    return sorted(f for f in found if begin < f <= end)


# In the windows around changes.
AROUND = [Expression(t) for t in (
    "0 * * * *", "*/15 * * * *", "30 */2 * * *", "0,30 1-3 * * *", "*/20 2 * * *", "0 0 * * *", "55 23 * * *", "30 0 * * sun",
    "5 1 * * sun,mon,fri", "0 12 L * *", "45 1 * 3,10 sunL", "0 2,3 1-7 * sat")]
# Over all the years.
ALWAYS = [Expression(t) for t in ("30 2 * * *", "0 9 * * mon", "0 0 L * *", "15 3 13 * fri", "0 6 * * tue#2", "0 0 29 2 *")]


def special(jumps):
    """Daily expressions that hit every gap and overlap of a zone: at its start, inside, just before its end, at its end."""
    found = set()
    for at, old, new in jumps:
        low, high = sorted((at + old, at + new))
        for number in (low - STEP, low, (low + high) // 2 // STEP * STEP, high - STEP, high):
            second = number % DAY
            found.add((second // 3600, second % 3600 // 60))
    return [Expression(f"{m} {h} * * *") for h, m in sorted(found)]


def report(name, first, years):
    zone = zoneinfo.ZoneInfo(name)
    begin = calendar.timegm((first, 1, 1, 0, 0, 0))
    end = calendar.timegm((first + years, 1, 1, 0, 0, 0))
    jumps = changes(zone, begin - 30 * DAY, end + 30 * DAY)
    assert all(at % STEP == old % STEP == new % STEP == 0 for at, old, new in jumps), name
    lines = []
    own = special(jumps)
    # Around every change, and around ordinary days far from any.
    spans = [(at - DAY, at + DAY) for at, _, _ in jumps if begin < at < end]
    # Also asked from within the second pass of an overlap, or from right behind a gap.
    spans += [(at + 600, at + DAY // 4) for at, _, _ in jumps if begin < at < end]
    spans += [(begin + 45 * DAY, begin + 46 * DAY), (end - 200 * DAY, end - 199 * DAY)]
    for low, high in spans:
        for expression in AROUND + own:
            found = fires(zone, expression, low, high, jumps)
            lines.append(f"window\t{expression.text}\t{low}\t{high}\t{' '.join(map(str, found))}")
    for expression in ALWAYS:
        found = fires(zone, expression, begin, end, jumps)
        total = sum((i + 1) * f for i, f in enumerate(found)) % (2**61 - 1)
        lines.append(f"decade\t{expression.text}\t{begin}\t{end}\t{len(found)}\t{total}")
    return lines


def main():
    os.nice(10)  # other tests run at the same time, and watch the clock
    first, years = int(sys.argv[1]), int(sys.argv[2])
    known = {}
    for name in sys.stdin.read().split():
        # Many names are one zone: the same file needs the same work once.
        with open(f"{zoneinfo.TZPATH[0]}/{name}", "rb") as file:
            content = file.read()
        print(f"zone\t{name}")
        if content in known:
            print(f"same\t{known[content]}")
            continue
        known[content] = name
        print("\n".join(report(name, first, years)))


main()
