"""Amazon SQS, SendMessage, JSON protocol: https://docs.aws.amazon.com/AWSSimpleQueueService/

    POST /  X-Amz-Target: AmazonSQS.SendMessage    200 {"MessageId","MD5OfMessageBody"}
FIFO queues (QueueUrl ends in .fifo): MessageDeduplicationId (1 to 128 characters)
within 5 minutes is accepted and answered with the first message's id, whatever the
body, and delivered once.  Standard queues remove no duplicates.  Nothing can be asked.
"""

import hashlib
import itertools
import re
import uuid

from api import dig
from imitations.base import Imitation as Base
from replies import Reply, json_reply

JSON10 = "application/x-amz-json-1.0"
ID = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")


class Imitation(Base):

    ROUTES = [("POST", r"/?", "message")]
    REF_KEY = "MessageAttributes.client_reference.StringValue"
    KEY_LIFETIME_S = 5 * 60
    MISMATCH = "replay_anyway"

    def __init__(self, scenario):
        super().__init__(scenario)
        self.sequence = scenario.kept.setdefault("sqs sequence", itertools.count(1))

    # -- keys --------------------------------------------------------------

    def fifo(self, request):
        return str(dig(self.body(request), ["QueueUrl"])).endswith(".fifo")

    def key(self, request):
        found = dig(self.body(request), ["MessageDeduplicationId"])
        return "%s" % found if found is not None and self.fifo(request) else None

    def key_scope(self, request):
        return dig(self.body(request), ["QueueUrl"])

    def dedupes(self):
        return True

    def mismatched(self, request):
        return self.fail(400, "InvalidParameterValue", "MessageDeduplicationId")

    def repeat(self, entry, request):
        """There is no conflict: the message is accepted whatever the first one does."""
        if not self.same_request(entry, request):
            request.key_outcome = "mismatch"
            return self.mismatched(request)
        request.key_outcome = "replayed"
        self.scenario.reply_of(entry.request)
        return self.told(request, entry.request.effect_id, entry.request.object["number"])

    # -- writes ------------------------------------------------------------

    def check_message(self, request):
        body = self.body(request)
        if request.header("x-amz-target") != "AmazonSQS.SendMessage":
            return self.fail(400, "UnknownOperationException", "no such operation")
        for name in ("QueueUrl", "MessageBody") + (("MessageGroupId",) if self.fifo(request) else ()):
            if not isinstance(body, dict) or not body.get(name):
                return self.fail(400, "MissingParameter",
                                 "The request must contain the parameter %s." % name)
        ident = body.get("MessageDeduplicationId")
        if self.fifo(request) and ident is None:
            return self.fail(400, "InvalidParameterValue", "The queue should either have "
                             "ContentBasedDeduplication enabled or MessageDeduplicationId provided")
        if ident is not None and (not self.fifo(request) or not ID.fullmatch(str(ident))):
            return self.fail(400, "InvalidParameterValue", "MessageDeduplicationId")
        return None

    def make_message(self, request):
        ident, number = str(uuid.uuid4()), next(self.sequence)
        self.record(request, "messages", ident, {"MessageId": ident})
        request.object["number"] = number
        return self.told(request, ident, number)

    def told(self, request, ident, number):
        body = self.body(request)
        facts = {"MessageId": ident,
                 "MD5OfMessageBody": hashlib.md5(body["MessageBody"].encode()).hexdigest()}
        if self.fifo(request):
            facts["SequenceNumber"] = "%020d" % number
        return self.amazon(json_reply(200, facts))

    def amazon(self, reply):
        return Reply(reply.status, reply.body, reply.headers + [
            ("x-amzn-RequestId", str(uuid.uuid4()))], JSON10)

    def fail(self, status, *facts, headers=()):
        return self.amazon(super().fail(status, *facts, headers=headers))

    def error(self, status, code=None, message=""):
        codes = {403: "AccessDeniedException", 400: "RequestThrottled", 503: "ServiceUnavailable"}
        return {"__type": "com.amazonaws.sqs#" + (code or codes.get(status, "InternalError")),
                "message": message}
