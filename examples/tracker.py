"""A program in another language that runs its agent itself, and records its requests through a server. Needs only Python.

    throughline serve                                       # prints its address
    THROUGHLINE_SERVER=$(throughline link --address) THROUGHLINE_TOKEN=$(cat HOME/server/token) python3 tracker.py
"""

import json
import os
import threading
import urllib.error
import urllib.parse
import urllib.request
import uuid
from contextlib import contextmanager


class Refused(Exception):
    """The server refused the request, with the reason."""

    def __init__(self, problem):
        super().__init__(problem["detail"])
        self.code = problem["code"]


class Tracker:
    """The tracker of a server. Its locks are leases: they are renewed while a request runs, and expire if this program dies."""

    def __init__(self, url, token):
        self.url, self.token = url.rstrip("/"), token
        self.holder = str(uuid.uuid4())  # the name of this program: the same in all its calls

    def ask(self, method, path, body=None):
        request = urllib.request.Request(f"{self.url}/v1/tracker{path}", method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        data = None if body is None else json.dumps({"holder": self.holder, **body}).encode()
        try:
            with urllib.request.urlopen(request, data, timeout=90) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Refused(json.load(error)) from None

    @contextmanager
    def request(self, request_id, agent, prompt, wait_ms=60_000):
        """Yields the request with its lock, and renews the lock meanwhile. An error inside is recorded as its failure."""
        at = f"/requests/{urllib.parse.quote(request_id, safe='')}"
        # Recorded with its prompt before anything is sent. While another request of the agent is open, this waits for its end.
        new = {"requestId": request_id, "agentId": agent, "sessionId": None, "current": True}
        tracked = self.ask("POST", "/requests", {**new, "prompt": prompt, "waitMs": wait_ms})
        done = threading.Event()
        seconds = tracked["lock"]["expiresIn"] / 3000  # three times in its term
        threading.Thread(target=self.renew, args=(at, seconds, done), daemon=True).start()
        try:
            yield Request(self, at, tracked["sessionId"])
        except Exception as error:
            usage = getattr(error, "usage", {})  # the cost of a failed request is known, too
            self.ask("POST", f"{at}/fail", {"reason": str(error), "usage": usage})
            raise
        finally:
            done.set()

    def renew(self, at, seconds, done):
        while not done.wait(seconds):
            try:
                self.ask("POST", f"{at}/renew", {})
            except Refused:
                return  # another program has the lock: later writes of this one are refused
            except OSError:
                pass  # the server is away: the next renewal may reach it


class Request:
    def __init__(self, tracker, at, session):
        self.tracker, self.at, self.session = tracker, at, session

    def session_named(self, session):
        self.tracker.ask("POST", f"{self.at}/session", {"sessionId": session})

    def complete(self, reply, usage):
        return self.tracker.ask("POST", f"{self.at}/complete", {"reply": reply, "usage": usage})["status"]


class Agent:
    """Stands for a program like `claude -p --resume ID`: it knows what its sessions were told, and renames them every time."""

    def __init__(self):
        self.sessions = {}

    def answer(self, prompt, resume):
        if "fail" in prompt:
            error = RuntimeError("The model is overloaded.")
            error.usage = {"inputTokens": len(prompt)}
            raise error
        told = [*self.sessions.get(resume, []), prompt]
        session = f"session-{len(told)}"
        self.sessions[session] = told
        return session, f"I was told: {'; '.join(told)}", {"inputTokens": len(prompt), "modelCalls": 1}


def main():
    tracker = Tracker(os.environ["THROUGHLINE_SERVER"], os.environ["THROUGHLINE_TOKEN"])
    agent = Agent()

    def ask(request_id, prompt):
        try:
            with tracker.request(request_id, "agent456", prompt) as request:
                session, reply, usage = agent.answer(prompt, request.session)
                request.session_named(session)
                print(f"{request_id}: {request.complete(reply, usage)} in {session}: {reply}")
        except RuntimeError as error:
            print(f"{request_id}: failed: {error}")

    ask("req1", "The codeword is amber")
    # Two at once: one waits for the other, and continues in the session that the other has left.
    both = [threading.Thread(target=ask, args=(f"req{n}", "And birch")) for n in (2, 3)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    ask("req4", "Please fail")
    print("sessions:", " -> ".join(tracker.ask("GET", "/agents/agent456")["sessionIds"]))


if __name__ == "__main__":
    main()
