"""earshot-notify with a real daemon: notices that link to their session, escalate, survive a reload, and sinks that fail."""
import json
import os
import shutil
import signal
import unittest

from notifier_test import NotifierCase
from support.harness import build, earshot, wait_for
from support.notifier import Desktop, hook_rules, missing_desktop, notify

WAITING = '[[rule]]\nname = "waiting"\nstatus = "waiting"\nhold = "0"\ntitle = "{name} needs you"\n'


def two_sinks(first, second, more='escalate = { after = "2s", sinks = ["phone"] }'):
    return f"""defaults = false
sinks = ["hook"]
[sink.hook]
kind = "json"
url = "{first.url}"
[sink.phone]
kind = "json"
url = "{second.url}"
{WAITING}{more}
"""


class Escalation(NotifierCase):
    def test_an_unanswered_wait_reaches_the_next_sink_once_also_across_a_restart(self):
        self.start()
        for after in ("2s", "40s", "160s"):  # a busy machine may escalate before the kill: then again
            first, second = self.receiver(), self.receiver()
            notifier = self.notifier(two_sinks(first, second, f'escalate = {{ after = "{after}", sinks = ["phone"] }}'))
            session, registry = self.session_with_registry()
            registry.set_status("waiting", "permission prompt")
            sent = self.wait_notices(first, 1)[0]
            wait_for(lambda: notifier.saved().get("queue") == [], "the delivery to be saved")
            notifier.kill()
            if not second.requests:
                break
            registry.set_status("busy")
            self.wait_state(self.witness, session)
            shutil.rmtree(os.path.join(self.state, "notify"))
        notifier.start()
        escalated = self.wait_notices(second, 1)[0]
        self.assertEqual((escalated["id"], escalated["title"], escalated["link"]), (sent["id"], "lighthouse needs you", sent["link"]))
        registry.set_status("busy")
        wait_for(lambda: len(notifier.decisions(decision="closed")) == 2, "both notices to be closed")
        self.assertEqual((len(first.delivered()), len(second.delivered())), (1, 1))
        texts = notify("why", "--state", self.state, home=self.home).stdout
        self.assertRegex(texts, rf"held +waiting .* to phone if it is unanswered after {after}")
        self.assertRegex(texts, r"escalated +waiting .* to phone")

    def test_an_answer_cancels_the_escalation_and_drops_what_is_queued(self):
        self.start()
        first, second = self.receiver(), self.receiver((503, {"Retry-After": "3600"}))
        notifier = self.notifier(two_sinks(first, second))
        session, registry = self.session_with_registry()
        registry.set_status("waiting", "permission prompt")
        wait_for(lambda: notifier.decisions(decision="not sent", sink="phone"), "the escalation that is refused")
        registry.set_status("busy")
        wait_for(lambda: notifier.decisions(decision="withdrawn"), "the queued delivery to be dropped")
        wait_for(lambda: notifier.queue() == [], "an empty queue")
        notifier.reload(two_sinks(first, second, 'escalate = { after = "1h", sinks = ["phone"] }'))  # later than the answer
        registry.set_status("waiting", "permission prompt")
        wait_for(lambda: len(first.delivered()) == 2, "the second wait")
        registry.set_status("busy")
        wait_for(lambda: notifier.decisions(decision="answered"), "the cancelled escalation")
        wait_for(lambda: not notifier.saved()["held"], "no held notice")
        self.assertEqual(len(second.requests), 1)

    def test_check_and_test_explain_the_escalation(self):
        first, second = self.receiver(), self.receiver()
        path = os.path.join(self.home, "notify.toml")
        with open(path, "w") as file:
            file.write(two_sinks(first, second))
        good = notify("check", path, home=self.home)
        self.assertEqual(good.returncode, 0, good)
        self.assertIn("notify phone if it is unanswered 2s after it was sent", good.stdout)
        self.assertNotIn("no rule uses it", good.stdout)
        described = json.loads(notify("check", "--json", path, home=self.home).stdout)
        self.assertEqual(described["rules"][0]["escalate"], [{"after_ms": 2000, "sinks": ["phone"]}])
        shown = notify("test", "permission", "--rules", path, home=self.home)
        self.assertIn("phone after 2s without an answer: POST", shown.stdout)
        self.assertIn('"link":"http://127.0.0.1:7717/?session=5a3b1e00', shown.stdout)
        sent = notify("test", "permission", "--send", "--rules", path, home=self.home)
        self.assertEqual(sent.returncode, 0, sent)
        self.assertEqual((len(first.delivered()), len(second.delivered())), (1, 1))


class Links(NotifierCase):
    def test_a_notice_links_to_the_page_that_shows_its_session(self):
        daemon = self.start()
        receiver = self.receiver()
        self.notifier(hook_rules(receiver))
        session, registry = self.session_with_registry()
        registry.set_status("waiting", "permission prompt")
        notice = self.wait_notices(receiver, 1)[0]
        self.assertEqual(notice["link"], f"http://127.0.0.1:{daemon.port}/?session={session.session}&host={notice['host']}")


class Sinks(NotifierCase):
    def test_why_shows_what_each_server_answered_and_the_next_try(self):
        self.start()
        receiver = self.receiver((500, {}), 200)
        notifier = self.notifier(hook_rules(receiver))
        session, registry = self.session_with_registry()
        registry.set_status("waiting", "permission prompt")
        self.wait_notices(receiver, 1)
        wait_for(lambda: notifier.sinks().get("hook", {}).get("sent_ms"), "the state of the sink")
        failed = notifier.decisions(decision="not sent")[0]
        sent = wait_for(lambda: notifier.decisions(decision="sent"), "the sent decision")[0]
        self.assertEqual((failed["sink"], failed["why"]), ("hook", "to hook: HTTP 500: accepted"))
        self.assertGreater(failed["next_ms"], failed["at_ms"])
        self.assertEqual((sent["sink"], sent["why"]), ("hook", "to hook: HTTP 200: accepted"))
        self.assertEqual(notifier.sinks()["hook"]["failures"], 0)
        self.assertEqual(notifier.sinks()["hook"]["answer"], "HTTP 200: accepted")
        texts = notify("why", "--state", self.state, home=self.home).stdout
        self.assertRegex(texts, r"not sent +waiting .* to hook: HTTP 500: accepted; next try \d\d:\d\d:\d\d")
        self.assertRegex(texts, r"(?m)^Sinks\n  hook: sent \d\d:\d\d:\d\d: HTTP 200: accepted$")

    def test_a_sink_that_keeps_failing_is_a_warning_of_doctor(self):
        self.start()
        receiver = self.receiver(404, 404, 404)
        notifier = self.notifier(hook_rules(receiver))
        session, registry = self.session_with_registry()
        for n in range(3):
            registry.set_status("waiting", "permission prompt")
            wait_for(lambda: len(receiver.requests) == n + 1, "the refused notice")
            registry.set_status("busy")
            wait_for(lambda: len(notifier.decisions(decision="closed")) == n + 1, "the answer")
        failing = wait_for(lambda: notifier.decisions(decision="failing"), "the report")
        self.assertEqual([(entry["sink"], entry["why"]) for entry in failing],
                         [("hook", "the sink hook: 3 attempts in a row failed: HTTP 404: accepted")])
        wait_for(lambda: notifier.sinks()["hook"]["failures"] == 3, "the saved state")
        findings = json.loads(earshot("doctor", "--json", "--state", self.state, home=self.home).stdout)["findings"]
        warning = next(finding for finding in findings if finding["what"] == "notices")
        self.assertEqual((warning["level"], warning["advice"]), ("warning", "earshot-notify why"))
        self.assertRegex(warning["text"], "^the sink hook failed 3 times in a row, .*: HTTP 404: accepted$")
        registry.set_status("waiting", "permission prompt")
        wait_for(lambda: notifier.decisions(decision="works again"), "the recovery")
        wait_for(lambda: notifier.sinks()["hook"]["failures"] == 0, "the saved state")
        findings = json.loads(earshot("doctor", "--json", "--state", self.state, home=self.home).stdout)["findings"]
        self.assertEqual([(f["level"], f["text"]) for f in findings if f["what"] == "notices"], [("ok", "earshot-notify delivers to hook")])


class Reload(NotifierCase):
    def test_new_rules_apply_and_held_notices_and_throttles_survive(self):
        self.start()
        receiver = self.receiver()
        before = hook_rules(receiver).replace('hold = "0"', 'hold = "1h"', 1)
        notifier = self.notifier(before)
        session, registry = self.session_with_registry()
        registry.set_status("waiting", "permission prompt")
        wait_for(lambda: notifier.decisions(decision="held"), "the held notice")
        pid = notifier.process.pid
        changed = before.replace('title = "{name} failed"', 'title = "{name} broke"\nthrottle = "1h"')
        notifier.reload(changed)
        wait_for(lambda: [held["notice"]["title"] for held in notifier.saved()["held"]] == ["lighthouse needs you"], "the held notice")
        session.reply("API Error: 529 Overloaded", isApiErrorMessage=True)
        self.assertEqual([n["title"] for n in self.wait_notices(receiver, 1)], ["lighthouse broke"])
        notifier.reload(changed.replace("broke", "is broken"))
        session.prompt("again")
        session.reply("API Error: 529 Overloaded", isApiErrorMessage=True)
        wait_for(lambda: notifier.decisions(decision="throttled"), "the throttled notice")
        self.assertEqual((notifier.process.pid, notifier.process.poll()), (pid, None))
        self.assertEqual(len(receiver.requests), 1)

    def test_a_bad_file_keeps_the_rules_and_says_why(self):
        self.start()
        receiver = self.receiver()
        rules = hook_rules(receiver)
        notifier = self.notifier(rules)
        notifier.reload(rules + 'colour = "red"\n', expected="the earlier ones stay in use")
        self.assertIn("unknown key `colour`", notifier.output())
        wait_for(lambda: notifier.saved().get("rules_problem"), "the saved problem")
        decision = notifier.decisions(decision="not reloaded")[0]
        self.assertRegex(decision["why"], r"notify\.toml:\d+: unknown key `colour`.*the earlier rules stay in use")
        self.assertIn("The rules were not reloaded: ", notify("why", "--state", self.state, home=self.home).stdout)
        findings = json.loads(earshot("doctor", "--json", "--state", self.state, home=self.home).stdout)["findings"]
        warning = next(finding for finding in findings if finding["what"] == "notices")
        self.assertEqual((warning["level"], warning["advice"]), ("warning", "earshot-notify check"))
        session, registry = self.session_with_registry()
        registry.set_status("waiting", "permission prompt")
        self.wait_notices(receiver, 1)
        notifier.reload(rules)
        wait_for(lambda: not notifier.saved().get("rules_problem"), "the problem to be gone")

    def test_it_reloads_while_there_is_no_daemon(self):
        receiver = self.receiver()
        notifier = self.notifier(hook_rules(receiver), wait=False)
        notifier.wait_output("Retrying until it is available.")
        before = len(notifier.output())
        notifier.write_rules(hook_rules(receiver).replace("needs you", "waits"))
        notifier.process.send_signal(signal.SIGHUP)
        notifier.wait_output("reloaded the rules", before)
        self.start()
        notifier.wait_output("listening to the daemon", before)
        session, registry = self.session_with_registry()
        registry.set_status("waiting", "permission prompt")
        self.assertEqual(self.wait_notices(receiver, 1)[0]["title"], "lighthouse waits")

    def test_many_reloads_lose_and_repeat_nothing(self):
        self.start()
        receiver = self.receiver(500, 500)
        rules = hook_rules(receiver)
        notifier = self.notifier(rules)
        sessions = []
        for n in range(8):
            session, registry = self.session_with_registry(cwd=f"/home/ada/p{n}")
            registry.set_status("waiting", "permission prompt")
            sessions.append(session.session)
            notifier.process.send_signal(signal.SIGHUP)
        wait_for(lambda: sum(1 if "session" in n else int(n["title"].split()[0]) for n in {n["id"]: n for n in receiver.delivered()}.values()) >= 8,
                 "every notice", give_up=lambda: notifier.process.poll() is not None and notifier.output()[-3000:])
        self.assertEqual(len({n["id"] for n in receiver.delivered()}), len(receiver.delivered()))


@unittest.skipIf(missing_desktop(), f"not installed: {', '.join(missing_desktop())}")
class OnTheDesktop(NotifierCase):
    def desktop(self):
        desktop = Desktop(self.home)
        self.addCleanup(desktop.close)
        return desktop

    def script(self, directory, name, text):
        os.makedirs(directory, exist_ok=True)
        path = os.path.join(directory, name)
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def test_focus_runs_earshot_beside_the_notifier_without_a_shell(self):
        self.start()
        desktop = self.desktop()
        programs, arguments = os.path.join(self.home, "pro grams"), os.path.join(self.home, "arguments")
        self.script(programs, "earshot", f'for word in "$@"; do printf "%s\\0" "$word"; done >"{arguments}.part"\nmv "{arguments}.part" "{arguments}"\n')
        program = os.path.join(programs, "earshot-notify")
        shutil.copy(os.path.join(build(), "earshot-notify"), program)
        self.notifier(environment=desktop.environment, program=program)
        session, registry = self.session_with_registry()
        registry.set_status("waiting", "permission prompt")
        wait_for(lambda: desktop.displayed() == 1, "the notice")
        desktop.choose_action("Focus")
        wait_for(lambda: os.path.exists(arguments), "earshot")
        with open(arguments, "rb") as file:
            self.assertEqual(file.read().split(b"\0")[:-1], [b"focus", b"--state", self.state.encode(), b"--", session.session.encode()])

    def test_a_failing_sink_is_reported_once_and_the_report_is_closed_when_it_works(self):
        self.start()
        desktop = self.desktop()
        receiver = self.receiver(404, 404, 404, 404)
        notifier = self.notifier(hook_rules(receiver), environment=desktop.environment)
        session, registry = self.session_with_registry()
        for n in range(4):
            registry.set_status("waiting", "permission prompt")
            wait_for(lambda: len(notifier.decisions(decision="dead letter")) == n + 1, "the refused notice")
            registry.set_status("busy")
            wait_for(lambda: len(notifier.decisions(decision="closed")) == n + 1, "the answer")
        wait_for(lambda: desktop.displayed() == 1, "the report")
        self.assertEqual([(title, body.splitlines()[0]) for title, body, *_ in wait_for(desktop.notify_calls, "its message")],
                         [("Notices do not reach the sink hook", "HTTP 404: accepted")])
        registry.set_status("waiting", "permission prompt")
        wait_for(lambda: desktop.displayed() == 0, "the report to be closed")


if __name__ == "__main__":
    unittest.main()
