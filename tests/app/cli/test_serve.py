"""The planner's page from the command line."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request

from quorate.app.cli import main

PROGRAM = "import sys; from quorate.app.cli import main; sys.exit(main())"


def status(address, name):
    """Return the status of an answer to whoever calls the machine by a name."""
    asked = urllib.request.Request(f"{address}/tasks", headers={"Host": name})
    try:
        with urllib.request.urlopen(asked) as reply:
            return reply.status
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code


def test_it_opens_on_this_machine_only_and_ends_when_told(tmp_path):
    command = [sys.executable, "-c", PROGRAM, "serve", "--port", "0", "--json"]
    command += ["--name", "planner.example"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = json.loads(process.stdout.readline())["url"]
            assert address.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(f"{address}/tasks") as reply:
                assert json.load(reply)[0]["name"] == "mean"
            for name, code in (("localhost", 200), ("evil.example", 400), ("planner.example", 200)):
                assert status(address, name) == code
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) in (0, 130)


def test_a_missing_ledger_is_refused_before_anything_opens(tmp_path, capsys):
    assert main(["serve", "--ledger", str(tmp_path / "none.db")]) == 2
    assert "none.db" in capsys.readouterr().err
