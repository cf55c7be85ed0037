"""Says when local days begin, worked out from Python's own zone data, one day after the other.

A day begins at the least instant whose local date is that day or later. Arguments: first year, last year, then the zones on standard
input, one a line. For each zone, lines with tabs in between:
    zone  <name>
    same  <name>                       an earlier zone, whose file has the same bytes; else
    days  <first day> <count> <begin>  so many days in a row begin at so many seconds after midnight in Greenwich
"""

import datetime as dt
import os
import sys
import zoneinfo

DAY = 86_400
UTC = dt.timezone.utc
EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)


def local_day(instant, zone):
    return (EPOCH + dt.timedelta(seconds=instant)).astimezone(zone).toordinal()


def begin(ordinal, zone):
    """The first guess is off at most by the size of a change of the clock: from there it is walked back, second by second at the end."""
    midnight = dt.datetime.fromordinal(ordinal).replace(tzinfo=zone)
    instant = int((midnight - EPOCH).total_seconds())
    while local_day(instant, zone) < ordinal:
        instant += 60
    for step in (3600, 60, 1):
        while local_day(instant - step, zone) >= ordinal:
            instant -= step
    # A clock put back over midnight shows the day, leaves it and shows it again: it may have been there hours before, and for minutes.
    for minutes in range(5, 240, 5):
        if local_day(instant - 60 * minutes, zone) >= ordinal:
            return begin_from(instant - 60 * minutes, ordinal, zone)
    return instant


def begin_from(instant, ordinal, zone):
    for step in (60, 1):
        while local_day(instant - step, zone) >= ordinal:
            instant -= step
    return instant


def offsets(zone, first, last):
    """The offset of each day at midnight in Greenwich."""
    moment = dt.datetime.fromordinal(first).replace(tzinfo=UTC)
    found = []
    for _ in range(first, last + 1):
        found.append(moment.astimezone(zone).utcoffset())
        moment += dt.timedelta(days=1)
    return found


def main():
    first = dt.date(int(sys.argv[1]), 1, 1).toordinal()
    last = dt.date(int(sys.argv[2]), 12, 31).toordinal()
    epoch = dt.date(1970, 1, 1).toordinal()
    seen = {}
    out = []
    for name in sys.stdin.read().split("\n"):
        for directory in zoneinfo.TZPATH:
            path = os.path.join(directory, name)
            if os.path.isfile(path):
                break
        with open(path, "rb") as file:
            content = file.read()
        out.append(f"zone\t{name}")
        if content in seen:
            out.append(f"same\t{seen[content]}")
            continue
        seen[content] = name
        zone = zoneinfo.ZoneInfo(name)
        around = 2
        known = offsets(zone, first - around, last + around)
        changes = {i for i in range(1, len(known)) if known[i] != known[i - 1]}
        odd = {i + j for i in changes for j in range(-around, around + 1)}
        run = None
        for ordinal in range(first, last + 1):
            place = ordinal - first + around
            # Far from any change a day begins when the clock shows midnight, and there is no doubt when that is.
            after = begin(ordinal, zone) - (ordinal - epoch) * DAY if place in odd else -int(known[place].total_seconds())
            if run and run[2] == after:
                run[1] += 1
            else:
                if run:
                    out.append(f"days\t{run[0]}\t{run[1]}\t{run[2]}")
                run = [ordinal - epoch, 1, after]
        out.append(f"days\t{run[0]}\t{run[1]}\t{run[2]}")
    sys.stdout.write("\n".join(out) + "\n")


main()
