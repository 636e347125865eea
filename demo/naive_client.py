#!/usr/bin/env python3
"""The client that most people write, for the demo.

It books, gets no answer, looks the booking up at once, is told "not found",
and books again under a fresh id.  Each step is reasonable.  Together they make
two bookings: the first one had arrived, it was only not visible yet.
"""

import argparse
import sys
import urllib.error
import urllib.request
import uuid

MAX_BOOKINGS = 3


def event(uid, summary, start, end):
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//naive client//EN", "BEGIN:VEVENT",
             "UID:" + uid, "DTSTAMP:20300101T000000Z", "DTSTART:" + start, "DTEND:" + end,
             "SUMMARY:" + summary, "END:VEVENT", "END:VCALENDAR"]
    return ("\r\n".join(lines) + "\r\n").encode()


def request(method, url, body=None, headers=None):
    """Returns the status, or None when there is no answer."""
    # No proxy of the environment stands between us and a loopback address.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, data=body, method=method, headers=headers or {}),
                         timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", help="URL of the calendar, with a slash at its end")
    parser.add_argument("--summary", default="Dentist")
    parser.add_argument("--start", default="20300601T090000Z")
    parser.add_argument("--end", default="20300601T093000Z")
    options = parser.parse_args()

    for _ in range(MAX_BOOKINGS):
        uid = str(uuid.uuid4())
        url = options.collection + uid + ".ics"
        status = request("PUT", url, event(uid, options.summary, options.start, options.end),
                         {"Content-Type": "text/calendar; charset=utf-8", "If-None-Match": "*"})
        if status is not None and 200 <= status < 300:
            print("PUT %s.ics: %d, booked" % (uid, status), flush=True)
            return 0
        if status is not None:
            print("PUT %s.ics: %d, refused" % (uid, status), flush=True)
            return 1
        print("PUT %s.ics: no answer" % uid, flush=True)
        status = request("GET", url)
        if status == 200:
            print("GET %s.ics: 200, it is there" % uid, flush=True)
            return 0
        if status != 404:
            print("GET %s.ics: %s, cannot tell" % (uid, status or "no answer"), flush=True)
            return 1
        print("GET %s.ics: 404, not found, so book it again" % uid, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
