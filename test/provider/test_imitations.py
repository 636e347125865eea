#!/usr/bin/env python3
"""The imitations of real APIs keep to what is documented of those.

    python3 test/provider/test_imitations.py
"""

import json
import os
import re
import sys
import threading
import unittest
from urllib.parse import quote, urlencode

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from raw_client import NAMES, ProviderTest  # noqa: E402


class ImitationTest(ProviderTest):

    PLAYS = None

    def play(self, **spec):
        self.name = "t%d" % next(NAMES)
        return self.define(imitate=self.PLAYS, **spec)

    def lost(self, *request):
        with self.assertRaises(OSError):
            self.ask(*request)

    def held(self, first, second):
        """Two requests at once: (answer of the second, answer of the first)"""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.ask(*first)))
        thread.start()
        self.assertTrue(self.wait("writes=1")["reached"])
        other = self.ask(*second)
        self.call("POST", "/release/" + self.name)
        thread.join()
        return other, answers[0]


class Stripe(ImitationTest):

    PLAYS = "stripe"

    def intent(self, ref, key=None, **more):
        headers = {"Idempotency-Key": key} if key else {}
        fields = dict({"amount": 1099, "currency": "eur", "metadata[client_reference]": ref}, **more)
        return "POST", "/v1/payment_intents", urlencode(fields), headers

    def test_create_get_list_search(self):
        self.play()
        status, _, made = self.ask(*self.intent("r1"))
        self.assertEqual((status, made["object"], made["status"]),
                         (200, "payment_intent", "requires_payment_method"))
        self.assertRegex(made["id"], "^pi_[A-Za-z0-9]{24}$")
        self.assertEqual(made["amount"], 1099)
        self.assertEqual(self.ask("GET", "/v1/payment_intents/" + made["id"])[2], made)
        self.assertEqual(self.ask("GET", "/v1/payment_intents/pi_x")[0], 404)
        query = quote("metadata['client_reference']:'r1'")
        found = self.ask("GET", "/v1/payment_intents/search?query=" + query)[2]
        self.assertEqual(([f["id"] for f in found["data"]], found["has_more"], found["next_page"]),
                         ([made["id"]], False, None))
        ledger = self.counts(1, 1)
        self.assertEqual((ledger["effects"][0]["ref"], ledger["effects"][0]["id"]),
                         ("r1", made["id"]))

    def test_pages(self):
        self.play(preload=12)
        self.ask(*self.intent("mine"))
        page = self.ask("GET", "/v1/payment_intents")[2]
        self.assertEqual((len(page["data"]), page["has_more"]), (10, True))
        self.assertEqual(page["data"][0]["metadata"], {"client_reference": "mine"})
        page = self.ask("GET", "/v1/payment_intents?limit=10&starting_after=" + page["data"][-1]["id"])[2]
        self.assertEqual((len(page["data"]), page["has_more"]), (3, False))
        now = self.ask("GET", "/v1/payment_intents?limit=1")[2]["data"][0]["created"]
        page = self.ask("GET", "/v1/payment_intents?created%%5Bgte%%5D=%d" % (now - 5))[2]
        self.assertEqual(len(page["data"]), 1)
        self.play(preload=3, page_faults=[{"page": 2, "status": 429}])
        page = self.ask("GET", "/v1/payment_intents?limit=2")[2]
        path = "/v1/payment_intents?limit=2&starting_after=" + page["data"][-1]["id"]
        status, _, body = self.ask("GET", path)
        self.assertEqual((status, body["error"]["type"]), (429, "rate_limit_error"))
        self.assertEqual(self.ask("GET", path)[0], 200)

    def test_search_lags_and_the_list_does_not(self):
        self.play(search_lag_s=60)
        self.ask(*self.intent("r1"))
        query = quote("metadata['client_reference']:'r1'")
        self.assertEqual(self.ask("GET", "/v1/payment_intents/search?query=" + query)[2]["data"], [])
        self.assertEqual(len(self.ask("GET", "/v1/payment_intents")[2]["data"]), 1)
        self.assertEqual(self.ask("GET", "/v1/payment_intents/search?query=x")[0], 400)

    def test_keys(self):
        self.play(write=[{"then": "close"}])
        self.lost(*self.intent("r1", "K"))
        status, headers, body = self.ask(*self.intent("r1", "K"))
        self.assertEqual((status, headers["Idempotent-Replayed"]), (200, "true"))
        # parameters are compared, not bytes
        self.assertEqual(self.ask("POST", "/v1/payment_intents", "metadata%5Bclient_reference%5D=r1"
                                  "&currency=eur&amount=1099", {"Idempotency-Key": "K"})[2], body)
        status, _, other = self.ask(*self.intent("r1", "K", amount=5))
        self.assertEqual((status, other["error"]["type"]), (400, "idempotency_error"))
        self.assertEqual(self.ask(*self.intent("r1", "k" * 256))[0], 400)
        self.counts(5, 1)
        self.call("POST", "/expire/" + self.name)
        self.assertNotEqual(self.ask(*self.intent("r1", "K"))[2]["id"], body["id"])
        self.counts(6, 2)

    def test_a_failure_is_kept_and_a_refusal_is_not(self):
        self.play(write=[{"status": 500, "commit": "before"}, {}, {"status": 429}])
        answers = [self.ask(*self.intent("r1", "K")) for _ in range(2)]
        self.assertEqual([a[0] for a in answers], [500, 500])
        self.assertEqual(answers[1][1]["Idempotent-Replayed"], "true")
        self.assertEqual(answers[1][2]["error"]["type"], "api_error")
        self.assertEqual([self.ask(*self.intent("r2", "L"))[0] for _ in range(2)], [429, 200])
        status, _, body = self.ask("POST", "/v1/payment_intents", "amount=5", {"Idempotency-Key": "M"})
        self.assertEqual((status, body["error"]["param"]), (400, "currency"))
        self.assertEqual(self.ask(*self.intent("r3", "M"))[0], 200)
        self.counts(6, 3)

    def test_conflict_and_decline(self):
        self.play(write=[{"hold_s": -1}])
        other, first = self.held(self.intent("r1", "K"), self.intent("r1", "K"))
        self.assertEqual((other[0], first[0]), (409, 200))
        self.assertEqual(other[2]["error"]["code"], "idempotency_key_in_use")
        declined = self.intent("r2", "L", confirm="true", payment_method="pm_card_chargeDeclined")
        answers = [self.ask(*declined) for _ in range(2)]
        self.assertEqual([a[0] for a in answers], [402, 402])
        self.assertEqual(answers[1][1]["Idempotent-Replayed"], "true")
        paid = self.ask(*self.intent("r3", "M", confirm="true", payment_method="pm_card_visa"))[2]
        self.assertEqual(paid["status"], "succeeded")
        self.counts(5, 2)

    def test_refund(self):
        self.play(preload=[{"id": "pi_there", "amount": 500}])
        status, _, made = self.ask("POST", "/v1/refunds", "payment_intent=pi_there"
                                   "&metadata[client_reference]=r1")
        self.assertEqual((status, made["amount"], made["status"], made["id"][:3]),
                         (200, 500, "succeeded", "re_"))
        self.assertEqual(self.ask("POST", "/v1/refunds", "payment_intent=pi_no")[0], 404)
        self.assertEqual(self.ask("GET", "/v1/refunds?payment_intent=pi_there")[2]["data"], [made])
        self.counts(2, 1)


class PayPal(ImitationTest):

    PLAYS = "paypal"

    def order(self, ref, key, value="10.99", **headers):
        return "POST", "/v2/checkout/orders", {"intent": "CAPTURE", "purchase_units": [
            {"custom_id": ref, "amount": {"currency_code": "EUR", "value": value}}]}, \
            dict({"PayPal-Request-Id": key}, **headers)

    def test_orders_and_keys(self):
        self.play()
        status, _, made = self.ask(*self.order("r1", "K"))
        self.assertEqual((status, sorted(made)), (201, ["id", "links", "status"]))
        self.assertRegex(made["id"], "^[A-Z0-9]{17}$")
        self.assertEqual(self.ask("GET", made["links"][0]["href"])[2]["status"], "CREATED")
        self.assertEqual(self.ask("POST", "/v2/checkout/orders/%s/capture" % made["id"])[0], 201)
        status, _, again = self.ask(*self.order("r1", "K"))
        self.assertEqual((status, again["id"], again["status"]), (200, made["id"], "COMPLETED"))
        status, _, other = self.ask(*self.order("r1", "K", "11.00"))
        self.assertEqual((status, other["details"][0]["issue"]), (422, "DUPLICATE_REQUEST_ID"))
        self.assertEqual(self.ask(*self.order("r1", "K" * 109))[0], 400)
        self.assertEqual(self.ask("GET", "/v2/checkout/orders/X")[2]["name"], "RESOURCE_NOT_FOUND")
        self.assertEqual(self.ask("POST", "/v2/checkout/orders", {"intent": "X"})[0], 400)
        full = self.ask(*self.order("r2", "L", Prefer="return=representation"))[2]
        self.assertEqual(full["purchase_units"][0]["custom_id"], "r2")
        self.call("POST", "/expire/" + self.name)
        self.assertEqual(self.ask(*self.order("r1", "K"))[0], 201)
        self.assertEqual(self.ledger()["duplicates"], {"r1": 2})

    def test_conflict(self):
        self.play(write=[{"hold_s": -1}])
        other, first = self.held(self.order("r1", "K"), self.order("r1", "K"))
        self.assertEqual((other[0], first[0]), (409, 201))
        self.assertEqual(other[2]["details"][0]["issue"], "PREVIOUS_REQUEST_IN_PROGRESS")

    def test_reports(self):
        self.play(search_lag_s=0)
        for ref in ("r1", "r2"):
            ident = self.ask(*self.order(ref, ref))[2]["id"]
            self.ask("POST", "/v2/checkout/orders/%s/capture" % ident)
        self.assertEqual(self.ask("POST", "/v2/checkout/orders/%s/capture" % ident)[0], 422)
        path = "/v1/reporting/transactions?start_date=2020-01-01T00:00:00Z" \
               "&end_date=2999-01-01T00:00:00Z&page_size=1&page="
        pages = [self.ask("GET", path + str(n))[2] for n in (1, 2)]
        self.assertEqual([p["transaction_details"][0]["transaction_info"]["custom_field"]
                          for p in pages], ["r1", "r2"])
        self.assertEqual((pages[0]["total_pages"], pages[0]["total_items"]), (2, 2))

    def test_payouts(self):
        self.play()
        body = {"sender_batch_header": {"sender_batch_id": "b1"}, "items": []}
        status, _, made = self.ask("POST", "/v1/payments/payouts", body)
        self.assertEqual((status, made["batch_header"]["batch_status"]), (201, "PENDING"))
        status, _, again = self.ask("POST", "/v1/payments/payouts", body)
        self.assertEqual(status, 400)
        self.assertEqual(self.ask("GET", again["links"][0]["href"])[2], made)
        self.counts(2, 1)


class GoogleCalendar(ImitationTest):

    PLAYS = "google-calendar"
    EVENTS = "/calendar/v3/calendars/primary/events"

    def event(self, ident, ref=None):
        return "POST", self.EVENTS, {
            "id": ident, "start": {"dateTime": "2030-01-07T09:00:00Z"}, "summary": "Room 4",
            "end": {"dateTime": "2030-01-07T10:00:00Z"},
            "extendedProperties": {"private": {"client_reference": ref or ident}}}

    def test_a_chosen_id_outlives_its_event(self):
        self.play()
        status, _, made = self.ask(*self.event("abc123"))
        self.assertEqual((status, made["id"], made["status"], made["kind"]),
                         (200, "abc123", "confirmed", "calendar#event"))
        status, _, again = self.ask(*self.event("abc123"))
        self.assertEqual((status, again["error"]["errors"][0]["reason"]), (409, "duplicate"))
        one = self.EVENTS + "/abc123"
        self.assertEqual([self.ask("DELETE", one)[0] for _ in range(2)], [204, 410])
        status, _, gone = self.ask("GET", one)
        self.assertEqual((status, gone["status"]), (200, "cancelled"))
        self.assertEqual(self.ask(*self.event("abc123"))[0], 409)
        self.assertEqual(self.ask("PUT", one, {})[0], 403)
        self.assertEqual([self.ask(m, self.EVENTS + "/never")[0] for m in ("GET", "DELETE")], [404, 404])
        ledger = self.counts(7, 2)
        self.assertEqual(ledger["duplicates"], {})

    def test_refusals_and_other_ids(self):
        self.play(preload=[{"id": "gone0", "deleted": True}])
        self.assertEqual(self.ask(*self.event("xyz"))[0], 400)
        self.assertEqual(self.ask("POST", self.EVENTS, {"id": "abcde"})[0], 400)
        self.assertEqual(self.ask(*self.event("gone0"))[0], 409)
        made = self.ask(*self.event("theid"))[2]
        # without the common prefix, as below a base URL that has it
        path = "/calendars/primary/events/theid"
        self.assertEqual(self.ask("GET", path)[2], made)
        self.assertEqual(self.ask("PUT", path, {"summary": "x"})[2]["summary"], "x")
        self.assertEqual(self.ask("GET", path)[2]["summary"], "x")

    def test_list(self):
        self.play(preload=[{}, {"deleted": True}, {}])
        self.ask(*self.event("mine0", "r1"))
        found, token = [], ""
        while token is not None:
            page = self.ask("GET", self.EVENTS + "?maxResults=2&pageToken=" + token)[2]
            found += page["items"]
            token = page.get("nextPageToken")
        self.assertEqual(len(found), 3)
        page = self.ask("GET", self.EVENTS + "?privateExtendedProperty=client_reference%3Dr1")[2]
        self.assertEqual([e["id"] for e in page["items"]], ["mine0"])
        page = self.ask("GET", self.EVENTS + "?showDeleted=true")[2]
        self.assertEqual([e["status"] for e in page["items"]].count("cancelled"), 1)

    def test_lost_answer_and_lag(self):
        self.play(visibility_lag_s=60, write=[{"then": "reset"}])
        self.lost(*self.event("abcde"))
        self.assertEqual(self.ask("GET", self.EVENTS + "/abcde")[0], 404)
        self.assertEqual(self.ask(*self.event("abcde"))[0], 409)
        self.counts(2, 1)


class GitHub(ImitationTest):

    PLAYS = "github"
    ISSUES = "/repos/octocat/hello-world/issues"
    AGENT = {"User-Agent": "test"}

    def issue(self, ref, repo=ISSUES):
        return "POST", repo, {"title": "t", "body": "b\n\n<!-- reference %s -->" % ref}, self.AGENT

    def get(self, path):
        return self.ask("GET", path, None, self.AGENT)

    def test_every_post_is_an_issue(self):
        self.play(preload=[{"pull_request": {}, "title": "a pull request"}])
        status, headers, made = self.ask(*self.issue("r1"))
        self.assertEqual((status, made["number"], made["html_url"]),
                         (201, 2, "https://github.com/octocat/hello-world/issues/2"))
        self.assertEqual(headers["Location"], made["url"])
        self.assertEqual(self.ask(*self.issue("r1"))[2]["number"], 3)
        ledger = self.counts(2, 2)
        self.assertEqual(ledger["duplicates"], {"r1": 2})
        self.assertEqual(ledger["effects"][0]["id"], made["html_url"])
        rows = self.get(self.ISSUES)[2]
        self.assertEqual([(r["number"], "pull_request" in r) for r in rows],
                         [(3, False), (2, False), (1, True)])
        self.assertEqual(self.get(self.ISSUES + "/2")[2], made)

    def test_refusals(self):
        self.play()
        status, _, body = self.ask("POST", self.ISSUES, {"body": "x"}, self.AGENT)
        self.assertEqual((status, body["errors"][0]["field"]), (422, "title"))
        self.assertEqual(self.ask(*self.issue("r", "/repos/octocat/secret/issues"))[0], 404)
        self.assertEqual(self.get("/repos/octocat/secret/issues")[0], 404)
        self.assertEqual(self.ask("GET", self.ISSUES)[0], 403)
        self.counts(2, 0)

    def test_pages_and_states(self):
        self.play(preload=5)
        self.ask(*self.issue("r1"))
        status, headers, rows = self.get(self.ISSUES + "?per_page=4&state=all")
        self.assertEqual([len(rows), rows[0]["number"]], [4, 6])
        links = dict((rel, url) for url, rel in re.findall(r'<([^>]*)>; rel="(\w+)"', headers["Link"]))
        self.assertEqual(sorted(links), ["last", "next"])
        status, headers, rows = self.get(links["next"])
        self.assertEqual(([r["number"] for r in rows], "next" in headers["Link"]), ([2, 1], False))
        self.assertEqual(self.ask("PATCH", self.ISSUES + "/6", {"state": "closed"}, self.AGENT)[0], 200)
        self.assertEqual([len(self.get(self.ISSUES + q)[2]) for q in ("", "?state=all", "?state=closed")],
                         [5, 6, 1])
        self.assertEqual(self.get(self.ISSUES + "?since=2999-01-01T00:00:00Z")[2], [])

    def test_search(self):
        self.play(read=[{"incomplete": True}])
        self.ask(*self.issue("r1"))
        body = self.get("/search/issues?q=r1+repo:octocat/hello-world")[2]
        self.assertEqual((body["total_count"], body["incomplete_results"]), (1, True))
        self.call("PUT", "/scenario/" + self.name, {"imitate": "github", "search_lag_s": 60})
        self.assertEqual(self.get("/search/issues?q=r1")[2]["items"], [])


class Others(ImitationTest):

    def test_adyen(self):
        self.PLAYS = "adyen"
        self.play()
        body = {"merchantAccount": "M", "amount": {"currency": "EUR", "value": 1}, "reference": "r1",
                "paymentMethod": {"type": "scheme"}}
        key = {"Idempotency-Key": "K"}
        first, second = (self.ask("POST", "/v72/payments", body, key) for _ in range(2))
        self.assertEqual((first[0], first[2]["resultCode"], first[1]["Idempotency-Key"]),
                         (200, "Authorised", "K"))
        self.assertRegex(first[2]["pspReference"], "^[A-Z0-9]{16}$")
        self.assertEqual(first[2], second[2])
        declined = dict(body, reference="r2", paymentMethod={"holderName": "DECLINED"})
        answers = [self.ask("POST", "/payments", declined, {"Idempotency-Key": "L"})[2] for _ in range(2)]
        self.assertEqual((answers[0]["resultCode"], answers[0]), ("Refused", answers[1]))
        self.assertEqual(self.ask("POST", "/payments", {"reference": "r"})[0], 422)
        self.assertEqual(self.ask("GET", "/payments?reference=r1")[0], 404)
        self.counts(5, 1)

    def test_adyen_conflict_and_outage(self):
        self.PLAYS = "adyen"
        self.play(write=[{"hold_s": -1}, {}, {"status": 503}])
        body = {"merchantAccount": "M", "amount": {"currency": "EUR", "value": 1}, "reference": "r1",
                "paymentMethod": {"holderName": "PENDING"}}
        request = ("POST", "/payments", body, {"Idempotency-Key": "K"})
        other, first = self.held(request, request)
        self.assertEqual((other[0], other[2]["errorCode"], other[1]["transient-error"]), (422, "704", "true"))
        self.assertEqual(first[2]["resultCode"], "Pending")
        self.assertEqual(self.ask(*request)[2]["errorCode"], "703")
        self.assertEqual(self.ask(*request)[2], first[2])
        self.counts(4, 1)

    def test_sendgrid(self):
        self.PLAYS = "sendgrid"
        self.play()
        body = {"personalizations": [{"to": [{"email": "a@example.com"}]}], "subject": "s",
                "from": {"email": "b@example.com"}, "content": [{"type": "text/plain", "value": "x"}],
                "custom_args": {"client_reference": "r1"}}
        answers = [self.ask("POST", "/v3/mail/send", body) for _ in range(2)]
        self.assertEqual([(a[0], a[2]) for a in answers], [(202, None)] * 2)
        self.assertEqual([a[1]["X-Message-Id"] for a in answers],
                         [e["id"] for e in self.ledger()["effects"]])
        self.assertEqual(self.ask("POST", "/v3/mail/send", {})[2]["errors"][0]["field"], "personalizations")
        self.assertEqual(self.ask("GET", "/v3/messages?query=x")[0], 403)
        self.assertEqual(self.counts(3, 2)["duplicates"], {"r1": 2})

    def message(self, queue, ident, text="x"):
        body = {"QueueUrl": "https://sqs.example/1/" + queue, "MessageBody": text, "MessageGroupId": "g",
                "MessageAttributes": {"client_reference": {"DataType": "String", "StringValue": "r1"}}}
        if ident:
            body["MessageDeduplicationId"] = ident
        return "POST", "/", json.dumps(body), {"X-Amz-Target": "AmazonSQS.SendMessage"}

    def test_sqs(self):
        self.PLAYS = "sqs"
        self.play()
        answers = [self.ask(*self.message("a.fifo", "K", text)) for text in ("x", "y")]
        bodies = [json.loads(a[2]) for a in answers]
        self.assertEqual([a[0] for a in answers], [200, 200])
        self.assertEqual(bodies[0]["MessageId"], bodies[1]["MessageId"])
        self.assertEqual(bodies[0]["SequenceNumber"], "%020d" % 1)
        self.assertEqual(answers[0][1]["Content-Type"], "application/x-amz-json-1.0")
        self.assertEqual(bodies[0]["MD5OfMessageBody"], "9dd4e461268c8034f5c8564e155c67a6")
        self.ask(*self.message("b.fifo", "K"))
        self.counts(3, 2)
        self.call("POST", "/expire/" + self.name)
        self.ask(*self.message("a.fifo", "K"))
        self.counts(4, 3)
        for _ in range(2):
            self.assertEqual(self.ask(*self.message("standard", None))[0], 200)
        self.counts(6, 5)
        for bad in (self.message("standard", "K"), self.message("a.fifo", None)):
            status, _, body = self.ask(*bad)
            self.assertEqual((status, json.loads(body)["__type"].split("#")[1]), (400, "InvalidParameterValue"))

    def test_sqs_while_the_first_runs(self):
        self.PLAYS = "sqs"
        self.play(write=[{"hold_s": -1, "commit": "after_hold"}])
        other, first = self.held(self.message("a.fifo", "K"), self.message("a.fifo", "K"))
        self.assertEqual(json.loads(other[2])["MessageId"], json.loads(first[2])["MessageId"])
        self.counts(2, 1)


if __name__ == "__main__":
    unittest.main()
