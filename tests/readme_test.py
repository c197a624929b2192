"""README.md: each test command selects the tests that show the guarantee of its row, and each link has a target."""
import os
import re
import subprocess
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# What each command must select, beside whatever else it does.
SHOWN_BY = {
    "split": ("unit_core/small sessions, split at every byte", "unit_core/larger sessions, split at random"),
    "byte by byte": ("Events::test_lines_appended_byte_by_byte_are_the_same_events", "CodexEvents::test_lines_appended_byte_by_byte_are_the_same_events"),
    "no gap": ("::test_a_snapshot_and_the_following_events_have_no_gap_and_no_repetition",),
    "resume": ("::test_61_a_client_that_resumes_after_kill_9_at_any_step_loses_and_repeats_no_event", "Resume::test_a_client_that_falls_behind_gets_lagged_and_continues",
               "Resume::test_a_lagging_client_with_catch_up_loses_nothing"),
    "usage": ("CountedOnce::test_a_fork_and_a_resumed_copy_repeat_nothing", "CountedOnce::test_subagents_of_every_layout_and_internal_calls_count_for_their_session",
              "Ccusage::test_generated_sessions"),
    "ledger": ("Ledger::test_127_what_forks_repeat_counts_once_in_every_program",),
    "secrets": ("Secrets::test_no_canary_appears_in_any_output",),
    "files": ("FilesByInotify::test_a_truncated_and_rewritten_file_is_reset_and_sent_again", "FilesByInotify::test_another_file_renamed_over_it_is_reset",
              "FilesBySweep::test_a_file_rewritten_with_its_first_line_kept_is_reset"),
    "root that hangs": ("Hang::test_80_a_root_that_hangs_does_not_delay_the_others",),
    "status": ("Status::test_each_kind_of_wait_has_its_reason", "Status::test_codex_a_command_that_takes_long_may_wait_for_approval_and_is_working"),
    "programs": ("ProgramFaults::test_202_a_rollout_that_is_migrated_while_the_daemon_is_down_is_reset_on_resume",),
    "browsers": ("Browsers::test_a_daemon_that_makes_up_everything_is_harmless",),
    "impostor": ("Page::test_144_the_service_worker_of_an_impostor_does_not_survive_the_daemon_s_return",),
    "dashboard": ("Dashboard::test_signin", "Dashboard::test_overview", "Dashboard::test_untrusted_text", "Dashboard::test_accessibility"),
    "hostile": ("Hostile::test_foreign_origins_and_hosts_are_refused_even_with_the_token",),
    "tls": ("Tls::test_a_remote_listener_without_tls_names_the_missing_options", "Tls::test_old_tls_and_plain_text_are_refused"),
    "key files": ("Secrets::test_key_files_are_never_opened",),
    "below a root": ("Secrets::test_nothing_is_written_below_a_root",),
    "package": ("Debian::test_installing_starts_nothing_and_prints_one_hint", "Tarball::test_the_daemon_installs_its_service_from_any_directory"),
    "units": ("UserManager::test_install_service_runs_the_sandboxed_daemon_under_the_user_manager", "Units::test_no_unit_exceeds_its_permitted_exposure"),
    "sandbox": ("Sandboxed::test_the_daemon_works_in_the_user_unit_s_sandbox",),
    "notifier": ("Webhooks::test_a_wait_and_a_failed_turn_are_delivered_once_and_signed", "Rules::test_a_wait_answered_within_its_hold_is_not_delivered_and_why_explains_it",
                 "Restarts::test_a_wait_that_lasts_across_restarts_is_delivered_once", "Restarts::test_killed_at_each_system_call_a_notice_is_delivered_once_or_twice"),
}


class Readme(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(TOP, "README.md"), encoding="utf-8") as page:
            self.text = page.read()

    def test_every_test_command_selects_what_shows_its_guarantee(self):
        commands = {quoted or plain for quoted, plain in re.findall(r'`\./dev test (?:"([^"]+)"|([\w-]+))`', self.text)}
        self.assertEqual(commands, set(SHOWN_BY))
        for command, tests in SHOWN_BY.items():
            selected = subprocess.run([os.path.join(TOP, "dev"), "test", "--list", command], capture_output=True, text=True, check=True).stdout.splitlines()
            for test in tests:
                self.assertTrue(any(name.endswith(test) for name in selected), f"./dev test {command} does not select {test}")

    def test_every_link_has_a_target(self):
        links = re.findall(r"\]\(([^)#:]+)\)", self.text)
        self.assertGreater(len(links), 5)
        for link in links:
            self.assertTrue(os.path.exists(os.path.join(TOP, link)), link)


if __name__ == "__main__":
    unittest.main()
