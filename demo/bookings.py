#!/usr/bin/env python3
"""Asks the calendar server itself what is in a calendar, for the demo.

  bookings.py make URL    creates the calendar, and its parent if it is missing
  bookings.py list URL    prints one line for each booking: UID, start, summary

The URL is the server's own, not the fault proxy's: nothing is hidden here.
"""

import sys
import urllib.error
import urllib.request


def request(method, url):
    # No proxy of the environment stands between us and a loopback address.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, method=method), timeout=10) as answer:
        return answer.read().decode("utf-8")


def unfold(text):
    """Joins the lines that iCalendar folds after 75 octets."""
    return text.replace("\r\n", "\n").replace("\n ", "").replace("\n\t", "").split("\n")


def bookings(calendar):
    found = []
    event = None
    for line in unfold(calendar):
        if line == "BEGIN:VEVENT":
            event = {}
        elif line == "END:VEVENT":
            found.append(event)
            event = None
        elif event is not None and ":" in line:
            name, _, value = line.partition(":")
            event[name.split(";")[0]] = value
    return found


def make(url):
    parent = url.rstrip("/").rpartition("/")[0] + "/"
    try:
        request("MKCOL", parent)
    except urllib.error.HTTPError as error:
        if error.code not in (405, 409):    # it exists
            raise
    request("MKCALENDAR", url)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("make", "list"):
        sys.stderr.write(__doc__)
        return 2
    try:
        if sys.argv[1] == "make":
            make(sys.argv[2])
            return 0
        for event in bookings(request("GET", sys.argv[2])):
            print("%s  %s  %s" % (event.get("UID", "?"), event.get("DTSTART", "?"), event.get("SUMMARY", "?")))
        return 0
    except (urllib.error.HTTPError, OSError) as error:
        sys.stderr.write("bookings: %s: %s\n" % (sys.argv[2], error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
