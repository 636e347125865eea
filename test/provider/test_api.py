#!/usr/bin/env python3
"""The API of the hostile provider: lists, keys, jobs, deletes.

    python3 test/provider/test_api.py
"""

import os
import sys
import threading
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from raw_client import NAMES, ProviderTest  # noqa: E402


class ApiTest(ProviderTest):

    def again(self, **spec):
        """A scenario of its own."""
        self.name = "t%d" % next(NAMES)
        return self.define(**spec)

    def post(self, ref, key=None, body=None, **headers):
        if key:
            headers["Idempotency-Key"] = key
        return self.ask("POST", "/effects", body or {"ref": ref}, headers)

    def refs(self, path):
        """The references a client finds that follows the pages to their end."""
        found = []
        while path:
            status, headers, page = self.ask("GET", path)
            self.assertEqual(status, 200, page)
            found += [row["ref"] for row in page["data"]]
            path = self.following(path, headers, page)
        return found

    def following(self, path, headers, page):
        if "next" in page:
            return page["next"]
        if page.get("next_cursor"):
            return "/effects?cursor=" + page["next_cursor"]
        for part in (headers.get("Link") or "").split(", "):
            if part.endswith('; rel="next"'):
                return part[1:part.index(">")]
        return None

    def key_outcomes(self):
        return [r["key_outcome"] for r in self.ledger()["requests"]]


class Lists(ApiTest):

    def test_every_way_of_paging_finds_all(self):
        expected = ["foreign-%d" % n for n in range(5)] + ["mine"]
        for spec in ({"paging": "link"}, {"paging": "next_url"}, {"paging": "cursor"},
                     {"paging": "next_url", "next_url": "relative"}):
            self.again(page_size=2, preload=5, **spec)
            self.post("mine")
            self.assertEqual(self.refs("/effects"), expected, spec)
            self.assertEqual(self.ledger()["reads"], 3)

    def test_newest_first(self):
        self.define(page_size=4, paging="link", order="newest", preload=5)
        self.post("mine")
        self.assertEqual(self.refs("/effects")[0], "mine")

    def test_offset_and_page(self):
        self.define(page_size=2, paging="offset", preload=5, has_more=True)
        pages = [self.ask("GET", "/effects?limit=2&offset=%d" % n)[2] for n in (0, 4, 6)]
        self.assertEqual([len(p["data"]) for p in pages], [2, 1, 0])
        self.assertEqual([p["has_more"] for p in pages], [True, False, False])
        self.again(page_size=2, paging="page", preload=5)
        pages = [self.ask("GET", "/effects?page=%d" % n)[2] for n in (1, 3, 4)]
        self.assertEqual([len(p["data"]) for p in pages], [2, 1, 0])
        self.assertNotIn("has_more", pages[0])

    def test_a_list_cut_silently(self):
        self.define(page_size=2, preload=5)
        self.post("mine")
        self.assertEqual(self.refs("/effects"), ["foreign-0", "foreign-1"])

    def test_filters(self):
        self.define(preload=[{"ref": "old", "age_s": 3600}, {"ref": "new"}])
        now = self.ask("GET", "/effects?ref=new")[2]["data"][0]["created"]
        self.assertEqual(self.refs("/effects?since=%d" % (now - 60)), ["new"])
        self.assertEqual(self.refs("/effects?until=%d" % (now - 60)), ["old"])
        self.assertEqual(self.refs("/effects?since=2999-01-01T00:00:00Z"), [])
        self.assertEqual(self.ask("GET", "/effects?since=x")[0], 400)
        self.again(paging="cursor")
        self.assertEqual(self.ask("GET", "/effects?cursor=x")[0], 400)

    def test_search_is_a_read(self):
        for own_port in (False, True):
            self.again(page_size=2, paging="cursor", preload=3, own_port=own_port,
                       write=[{"status": 503}], read=[{}, {"status": 429}])
            asked = {"filter": {}, "limit": 2}
            page = self.ask("POST", "/effects/search", asked)[2]
            self.assertEqual(len(page["data"]), 2)
            asked["cursor"] = page["next_cursor"]
            self.assertEqual(self.ask("POST", "/effects/search", asked)[0], 429)
            page = self.ask("POST", "/effects/search", asked)[2]
            self.assertEqual([r["ref"] for r in page["data"]], ["foreign-2"])
            self.assertIsNone(page["next_cursor"])
            self.assertEqual(self.ask("POST", "/effects/search", "text")[0], 400)
            found = self.ask("POST", "/effects/search", {"filter": {"ref": "foreign-1"}})[2]
            self.assertEqual([r["ref"] for r in found["data"]], ["foreign-1"])
            self.counts(0, 0, 0)
            self.assertEqual(self.post("r")[0], 503)

    def test_a_failing_page(self):
        self.define(page_size=2, paging="cursor", preload=5,
                    page_faults=[{"page": 2, "status": 429, "headers": {"Retry-After": "1"}}])
        second = "/effects?cursor=" + self.ask("GET", "/effects")[2]["next_cursor"]
        self.assertEqual([self.ask("GET", second)[0] for _ in range(3)], [429, 200, 200])
        self.again(page_size=2, paging="page", preload=5,
                   page_faults=[{"page": 3, "times": None, "status": 500}])
        self.assertEqual([self.ask("GET", "/effects?page=%d" % n)[0]
                          for n in (1, 3, 2, 3, 3)], [200, 500, 200, 500, 500])
        self.call("POST", "/reset/" + self.name)
        self.assertEqual(self.ask("GET", "/effects?page=3")[0], 500)

    def test_rows_shift_while_paging(self):
        self.define(page_size=2, paging="offset", order="newest", preload=4, shift_per_page=1)
        first, second = (self.refs("/effects?offset=%d" % n) for n in (0, 2))
        self.assertEqual(first[1], second[0])
        self.again(page_size=2, paging="offset", order="newest", preload=6, shift_per_page=-1)
        first, second = (self.refs("/effects?offset=%d" % n) for n in (0, 2))
        self.assertEqual((first, second), (["foreign-5", "foreign-4"], ["foreign-2", "foreign-1"]))
        self.again(page_size=2, paging="cursor", order="newest", preload=4, shift_per_page=1)
        self.assertEqual(self.refs("/effects"), ["foreign-%d" % n for n in (3, 2, 1, 0)])

    def test_foreign_objects(self):
        self.define(preload=[{"id": "77", "ref": "pr", "pull_request": {}, "body": {"a": 1}}])
        shown = self.ask("GET", "/effects/77")[2]
        self.assertEqual((shown["pull_request"], shown["body"]), ({}, {"a": 1}))
        self.post("mine")
        self.call("POST", "/preload/" + self.name, {"objects": 2})
        self.assertEqual(self.refs("/effects"), ["pr", "mine", "foreign-2", "foreign-3"])
        self.counts(1, 1)

    def test_incomplete(self):
        self.define(preload=1, read=[{"incomplete": True}, {"incomplete": "empty"}])
        pages = [self.ask("GET", "/effects")[2] for _ in range(3)]
        self.assertEqual([p.get("incomplete") for p in pages], [True, True, None])
        self.assertEqual([len(p["data"]) for p in pages], [1, 0, 1])

    def test_lag_hides_from_lists_and_searches(self):
        self.define(visibility_lag_s=60)
        self.post("mine")
        self.assertEqual(self.refs("/effects"), [])
        self.assertEqual(self.ask("POST", "/effects/search", {})[2]["data"], [])
        self.again(search_lag_s=60)
        self.post("mine")
        self.assertEqual(self.refs("/effects"), ["mine"])
        self.assertEqual(self.ask("POST", "/effects/search", {})[2]["data"], [])


class Keys(ApiTest):

    def test_without_key_settings_nothing_is_removed(self):
        self.define()
        for _ in range(2):
            self.post("r", "K")
        ledger = self.counts(2, 2)
        self.assertEqual([r["key"] for r in ledger["requests"]], ["K", "K"])
        self.assertEqual(len({r["body_sha256"] for r in ledger["requests"]}), 1)
        self.assertEqual(len(ledger["requests"][0]["body_sha256"]), 64)
        self.assertEqual(self.key_outcomes(), [None, None])

    def test_stored_reply(self):
        self.define(key_replay="stored_reply")
        first, second = self.post("r", "K"), self.post("r", "K")
        self.assertEqual((first[0], first[2]), (second[0], second[2]))
        self.assertEqual([a[1].get("Idempotent-Replayed") for a in (first, second)],
                         [None, "true"])
        self.assertNotEqual(self.post("r", "L")[2]["id"], first[2]["id"])
        self.post("r")
        self.counts(4, 3)
        self.assertEqual(self.key_outcomes(), ["new", "replayed", "new", None])

    def test_a_stored_failure(self):
        for commit, effects in (("before", 1), ("never", 0)):
            self.again(key_header="X-Key", write=[{"status": 500, "commit": commit}])
            answers = [self.post("r", **{"X-Key": "K"}) for _ in range(3)]
            self.assertEqual([a[0] for a in answers], [500] * 3)
            self.assertEqual(answers[2][1]["Idempotent-Replayed"], "true")
            self.counts(3, effects)

    def test_what_is_refused_leaves_the_key_unused(self):
        for step in ({"status": 429}, {"status": 400}, {"then": "close", "commit": "never"}):
            self.again(key_replay="stored_reply", write=[step])
            try:
                self.post("r", "K")
            except OSError:
                pass
            self.assertEqual(self.post("r", "K")[0], 201)
            self.counts(2, 1)
            self.assertEqual(self.key_outcomes(), ["new", "new"])

    def test_answer_lost_and_sent_again(self):
        self.define(key_replay="stored_reply", write=[{"then": "close"}])
        with self.assertRaises(OSError):
            self.post("r", "K")
        status, _, body = self.post("r", "K")
        self.assertEqual((status, body["id"]), (201, self.counts(2, 1)["effects"][0]["id"]))

    def test_current_state(self):
        self.define(key_replay="current_state")
        first, second = self.post("r", "K"), self.post("r", "K")
        self.assertEqual([first[0], second[0]], [201, 200])
        self.assertEqual(second[2]["id"], first[2]["id"])
        self.assertEqual(second[2]["body"], {"ref": "r"})
        self.counts(2, 1)

    def test_error_with_id(self):
        self.define(key_replay="error_with_id")
        first, second = self.post("r", "K"), self.post("r", "K")
        self.assertEqual(second[0], 409)
        self.assertEqual(second[2]["error"]["links"]["conflicting_resource_id"], first[2]["id"])
        self.counts(2, 1)

    def test_reattempt(self):
        self.define(key_replay="reattempt", write=[{"status": 500, "commit": "never"}])
        answers = [self.post("r", "K") for _ in range(3)]
        self.assertEqual([a[0] for a in answers], [500, 201, 201])
        self.assertEqual(answers[1][2]["id"], answers[2][2]["id"])
        self.counts(3, 1)

    def test_mismatch(self):
        self.define(key_replay="stored_reply")
        self.post("r", "K")
        status, _, body = self.post("r", "K", body={"ref": "r", "amount": 2})
        self.assertEqual((status, body["code"]), (422, "key_mismatch"))
        self.assertEqual(self.ask("PUT", "/effects", {"ref": "r"},
                                  {"Idempotency-Key": "K"})[0], 422)
        self.counts(3, 1)
        self.again(key_mismatch="replay_anyway")
        first = self.post("r", "K")
        second = self.post("r", "K", body={"ref": "r", "amount": 2})
        self.assertEqual((second[0], second[2]), (201, first[2]))
        self.counts(2, 1)

    def test_in_progress(self):
        for step in ({"hold_s": -1}, {"hold_s": -1, "commit": "after_hold"}):
            self.again(key_replay="stored_reply", write=[step])
            answers = []
            first = threading.Thread(target=lambda: answers.append(self.post("r", "K")))
            first.start()
            self.assertTrue(self.wait("writes=1")["reached"])
            status, _, body = self.post("r", "K")
            self.assertEqual((status, body["code"]), (409, "in_progress"))
            self.call("POST", "/release/" + self.name)
            first.join()
            self.assertEqual((answers[0][0], self.post("r", "K")[0]), (201, 201))
            self.counts(3, 1)

    def test_late_execution_keeps_the_key_busy(self):
        self.define(key_replay="stored_reply",
                    write=[{"status": 504, "commit_delay_s": 0.5}])
        self.assertEqual([self.post("r", "K")[0] for _ in range(2)], [504, 409])
        self.assertTrue(self.wait("effects=1")["reached"])
        self.assertEqual(self.post("r", "K")[0], 504)
        self.counts(3, 1)

    def test_lifetime(self):
        self.define(key_lifetime_s=3600)
        first = self.post("r", "K")
        self.assertEqual(self.post("r", "K")[2], first[2])
        self.call("POST", "/expire/" + self.name)
        second = self.post("r", "K")
        self.assertNotEqual(second[2]["id"], first[2]["id"])
        self.assertEqual(self.post("r", "K")[2], second[2])
        self.assertEqual(self.counts(4, 2)["duplicates"], {"r": 2})
        self.assertEqual(self.key_outcomes(), ["new", "replayed", "new", "replayed"])

    def test_lifetime_runs_out_by_itself(self):
        self.define(key_lifetime_s=0)
        for _ in range(2):
            self.post("r", "K")
        self.counts(2, 2)

    def test_key_elsewhere(self):
        self.define(key_body="meta.key")
        for _ in range(2):
            self.post(None, body={"ref": "r", "meta": {"key": 7}})
        self.assertEqual([r["key"] for r in self.counts(2, 1)["requests"]], ["7", "7"])
        self.again(key_query="request_id")
        for _ in range(2):
            self.ask("POST", "/effects?request_id=K", {"ref": "r"})
        self.counts(2, 1)

    def test_many_at_once_are_one(self):
        self.define(key_replay="stored_reply")
        threads = [threading.Thread(target=lambda: self.post("r", "K")) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.counts(20, 1)


class JobsAndDeletes(ApiTest):

    def test_location(self):
        self.define(accept="location", job_states=["queued", "pending", "succeeded"])
        status, headers, body = self.post("r")
        self.assertEqual((status, body), (202, None))
        self.counts(1, 0)
        states = [self.ask("GET", headers["Location"])[2] for _ in range(4)]
        self.assertEqual([s["status"] for s in states],
                         ["queued", "pending", "succeeded", "succeeded"])
        effect = self.counts(1, 1)["effects"][0]
        self.assertEqual(states[3]["result"], {"id": effect["id"], "ref": "r"})
        self.assertNotIn("result", states[1])
        self.assertEqual(self.ask("GET", "/jobs/other")[0], 404)

    def test_body_and_control(self):
        self.define(accept="body", job_states=["pending"])
        _, _, body = self.post("r")
        self.assertEqual((body["status"], body["ref"]), ("pending", "r"))
        for _ in range(3):
            self.assertEqual(self.ask("GET", body["status_url"])[2]["status"], "pending")
        jobs = self.call("POST", "/job/" + self.name, {"state": "succeeded", "id": "r"})
        self.assertEqual([(j["state"], j["polls"], j["committed"]) for j in jobs],
                         [("succeeded", 3, True)])
        self.assertEqual(self.counts(1, 1)["effects"][0]["id"], body["id"])
        self.assertEqual(self.ask("GET", body["status_url"])[2]["status"], "succeeded")

    def test_failure_has_no_effect(self):
        self.define(accept="body", job_states=["failed"])
        _, _, body = self.post("r")
        state = self.ask("GET", body["status_url"])[2]
        self.assertEqual((state["status"], state["error"]), ("failed", {"code": "job_failed"}))
        self.counts(1, 0)

    def test_effect_at_acceptance_and_own_words(self):
        self.define(accept="body", job_commit="accept", job_success="COMPLETE",
                    job_states=["COMPLETE"])
        _, _, body = self.post("r")
        self.counts(1, 1)
        self.assertEqual(self.ask("GET", body["status_url"])[2]["result"]["ref"], "r")
        self.counts(1, 1)

    def test_keys_and_jobs(self):
        self.define(accept="body", key_replay="stored_reply")
        first, second = self.post("r", "K"), self.post("r", "K")
        self.assertEqual((second[0], second[2]), (202, first[2]))
        for _ in range(3):
            self.ask("GET", first[2]["status_url"])
        self.counts(2, 1)

    def delete(self, ident):
        return self.ask("DELETE", "/effects/" + ident)[0]

    def look(self, ident):
        return self.ask("GET", "/effects/" + ident)[0]

    def test_plain_delete(self):
        self.define(delete={}, preload=[{"id": "b1", "ref": "theirs"}])
        made = self.post("r")[2]["id"]
        for ident in ("b1", made):
            self.assertEqual([self.look(ident), self.delete(ident), self.look(ident),
                              self.delete(ident)], [200, 204, 404, 404])
        self.assertEqual(self.delete("never"), 404)
        self.assertEqual(self.refs("/effects"), [])
        self.assertEqual([e["method"] for e in self.counts(6, 3)["effects"]],
                         ["POST", "DELETE", "DELETE"])

    def test_tombstones(self):
        self.define(delete={"status": 200, "get": 410, "again": 410})
        made = self.post("r")[2]["id"]
        self.assertEqual([self.delete(made), self.look(made), self.look("r"),
                          self.delete("r"), self.delete("never")],
                         [200, 410, 410, 410, 404])
        self.again(delete={"get": "cancelled", "again": 410},
                   preload=[{"id": "gone", "deleted": True}])
        self.assertEqual(self.ask("GET", "/effects/gone")[2]["status"], "cancelled")
        self.assertEqual(self.delete("gone"), 410)
        self.assertEqual(self.refs("/effects"), [])

    def test_html_and_lag(self):
        self.define(delete={}, not_found="html", write=[{"visibility_lag_s": 60}],
                    preload=[{"id": "b1"}])
        self.assertEqual(self.delete("b1"), 204)
        self.assertEqual(self.look("b1"), 200)
        status, headers, body = self.ask("GET", "/effects/b2")
        self.assertEqual((status, headers["Content-Type"]), (404, "text/html"))
        self.assertIn("<h1>404", body)

    def test_a_server_behind(self):
        behind = self.again(delete={})
        url = "http://127.0.0.1:%d/s/%s" % (behind["http"], self.name)
        name = self.name
        self.again(upstream=url, ref_suffix=".ics",
                   write=[{"then": "close"}, {}, {"then": "close", "commit": "never"}])
        with self.assertRaises(OSError):
            self.ask("PUT", "/effects/e1.ics", "text", {"X-More": "1"})
        self.assertEqual(self.ask("DELETE", "/effects/never.ics")[0], 404)
        with self.assertRaises(OSError):
            self.ask("PUT", "/effects/e2.ics", "text")
        self.assertEqual(self.ask("GET", "/effects/e1.ics?x=1")[2]["body"], "text")
        self.assertEqual([e["ref"] for e in self.counts(3, 1)["effects"]], ["e1"])
        self.assertEqual(self.ask("POST", "/effects", "metadata[r]=7", {
            "Content-Type": "application/x-www-form-urlencoded"})[0], 201)
        self.name = name
        ledger = self.counts(3, 2)
        self.assertIn(["X-More", "1"], ledger["requests"][0]["headers"])
        self.assertEqual([r["method"] for r in ledger["requests"]], ["PUT", "DELETE", "GET", "POST"])

    def test_script_errors_are_refused(self):
        for bad in ({"paging": "links"}, {"key_replay": "x"}, {"delete": {"gte": 1}},
                    {"accept": "x"}, {"imitate": "nobody"}, {"page_faults": [{"page": 1, "x": 1}]},
                    {"page_faults": [{"status": 500}]}):
            self.assertEqual(self.call("PUT", "/scenario/x", bad)[0], 400, bad)


if __name__ == "__main__":
    unittest.main()
