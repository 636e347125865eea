"""Work that is accepted now and done later."""

import secrets

from replies import empty_reply, error, json_reply

JOB_SPEC = {"accept", "job_states", "job_success", "job_commit"}
ACCEPTS = {"location", "body"}


class Jobs:
    """The jobs of one scenario; the caller holds the scenario's lock."""

    def __init__(self, scenario):
        self.scenario = scenario
        self.jobs = {}

    def forget(self):
        self.jobs = {}

    def path(self, request):
        """Where the job of a request is asked for, decided before it exists."""
        if request.job_id is None:
            request.job_id = "job_" + secrets.token_hex(8)
        return request.base() + request.prefix() + "/jobs/" + request.job_id

    def accepted_reply(self, request):
        url = self.path(request)
        if self.scenario.spec["accept"] == "location":
            return empty_reply(202, [("Location", url)])
        return json_reply(202, {"id": request.effect_id, "ref": request.ref,
                                "status": self.states()[0], "status_url": url})

    def states(self):
        return self.scenario.spec.get("job_states") or ["pending", "succeeded"]

    def start(self, request, lag):
        """The work is taken on; it becomes an effect at its success, or now."""
        self.path(request)
        job = {"id": request.job_id, "ref": request.ref, "effect_id": request.effect_id,
               "asked": 0, "state": None, "committed": False,
               "request": request, "lag": lag}
        self.jobs[job["id"]] = job
        if self.scenario.spec.get("job_commit") == "accept":
            self.execute(job)

    def execute(self, job):
        if not job["committed"]:
            job["committed"] = True
            self.scenario.commit(job["request"], job["lag"])

    def state(self, job):
        states = self.states()
        return job["state"] or states[min(job["asked"], len(states) - 1)]

    def settle(self, job):
        """The state the job is in now; success is an effect, once."""
        state = self.state(job)
        if state == self.scenario.spec.get("job_success", "succeeded"):
            self.execute(job)
        return state

    def ask(self, ident):
        """The answer to a poll; each poll moves the job one state on."""
        job = self.jobs.get(ident)
        if job is None:
            return json_reply(404, error("not_found"))
        state = self.settle(job)
        job["asked"] += 1
        shown = {"id": ident, "status": state}
        if job["committed"]:
            shown["result"] = {"id": job["effect_id"], "ref": job["ref"]}
        elif state in ("failed", "rejected"):
            shown["error"] = {"code": "job_" + state}
        return json_reply(200, shown)

    def set(self, state, ident=None):
        """Put one job, or all, into a state for good."""
        for job in self.jobs.values():
            if ident in (None, job["id"], job["ref"]):
                job["state"] = state
                self.settle(job)
        return self.as_json()

    def as_json(self):
        return [{"id": j["id"], "ref": j["ref"], "effect_id": j["effect_id"],
                 "state": self.state(j), "polls": j["asked"],
                 "committed": j["committed"]} for j in self.jobs.values()]
