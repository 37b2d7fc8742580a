"""Python and JavaScript make the same bytes, in Node and in a browser."""

import json
import shutil
import subprocess

import pytest

from browser import CHROMIUM, open_browser
from quorate.local.messages import MessageFormat
from quorate.local.server import Server
from quorate.local.task import Task
from quorate.local.vectors import client_script, known_answers, message_from_bytes, stored_answers

NODE = shutil.which("node")

# A storage of its own for everybody: many people in one process.
STORAGE = """
function nowhere() {
  const held = new Map();
  const getItem = (key) => (held.has(key) ? held.get(key) : null);
  return { getItem, setItem: (key, value) => { held.set(key, value); } };
}
"""

# Runs in Node and in the browser: compares every known answer and returns what differs.
COMPARE = """
async function compare(Quorate, answers) {
  const wrong = [];
  let checked = 0;
  const bytes = (text) => Uint8Array.from(text.match(/../g) || [], (pair) => parseInt(pair, 16));
  for (const answer of answers) {
    const options = { largestEpsilon: 9, storage: nowhere() };
    const client = await Quorate.Client.create(answer.task, options);
    if (client.id !== answer.id) wrong.push([answer.task, "id", client.id]);
    if (client.sharedSeed !== answer.shared_seed) wrong.push([answer.task, client.sharedSeed]);
    for (const each of answer.cases) {
      const random = bytes(each.random);
      const made = Quorate.hex(Quorate.messageFromBytes(client, each.candidate, random));
      if (made !== each.message) wrong.push([answer.task, each.message, made]);
      checked += 1;
    }
    for (const each of answer.decisions) {
      const found = await Quorate.plurality(each.records, client.sharedSeed);
      const text = found === null ? null : String(found);
      if (text !== each.candidate) wrong.push([each.records, text]);
      checked += 1;
    }
  }
  return { wrong, checked };
}
"""

REFUSALS = """
async function refusals(Quorate, tasks) {
  const found = [];
  for (const text of tasks) {
    try {
      await Quorate.Client.create(text, { largestEpsilon: 9, storage: nowhere() });
      found.push(null);
    } catch (problem) {
      found.push(problem instanceof Quorate.TaskError ? problem.message : String(problem));
    }
  }
  return found;
}
"""

MESSAGES = """
async function messages(Quorate, text, count, records) {
  const made = [];
  for (let i = 0; i < count; i++) {
    const client = await Quorate.Client.create(text, { largestEpsilon: 9, storage: nowhere() });
    const { message } = await client.answer(records);
    const again = (await client.answer([0])).message;
    if (Quorate.hex(message) !== Quorate.hex(again)) throw new Error("another message");
    made.push(Quorate.hex(message));
  }
  return made;
}
"""


def in_node(tmp_path, function, call):
    script = tmp_path / "quorate-client.js"
    script.write_text(client_script())
    program = (
        f"const Quorate = require({json.dumps(str(script))});\n{STORAGE}{function}\n"
        f"{call}.then((found) => console.log(JSON.stringify(found)));"
    )
    (tmp_path / "run.js").write_text(program)
    run = subprocess.run(
        [NODE, str(tmp_path / "run.js")], capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(run.stdout)


def test_the_stored_answers_are_what_python_makes():
    assert stored_answers() == json.loads(json.dumps(known_answers()))


def test_answers_cover_kept_hashes_coins_levels_and_nobody():
    for answer in stored_answers():
        task = Task.from_json(answer["task"])
        messages = [bytes.fromhex(case["message"]) for case in answer["cases"]]
        batch = MessageFormat(task).read(messages)
        assert batch.dropped == {}
        assert set(batch.reports.levels.tolist()) == set(range(task.response.levels))
        assert any(case["candidate"] is None for case in answer["cases"])


def test_a_changed_bit_of_randomness_changes_the_message():
    task = Task.from_json(stored_answers()[2]["task"])
    assert message_from_bytes(task, 5, bytes(8)) != message_from_bytes(task, 5, b"\1" + bytes(7))


@pytest.mark.skipif(NODE is None, reason="needs node")
class TestNode:
    def test_every_answer_is_the_same(self, tmp_path):
        answers = json.dumps(stored_answers())
        found = in_node(tmp_path, COMPARE, f"compare(Quorate, {answers})")
        assert found["wrong"] == []
        assert found["checked"] == 8 * (24 + 5)

    def test_a_wrong_answer_is_seen(self, tmp_path):
        answers = stored_answers()
        message = answers[0]["cases"][0]["message"]
        answers[0]["cases"][0]["message"] = message[:-4] + "ff00"
        found = in_node(tmp_path, COMPARE, f"compare(Quorate, {json.dumps(answers)})")
        assert len(found["wrong"]) == 1

    def test_tasks_that_python_refuses_are_refused(self, tmp_path):
        task = Task.local(name="t", candidates=2**14, epsilon=1.0, seed="00" * 32)
        document = json.loads(task.to_json())
        keep = int(document["keep"])
        wrong = [
            "",
            "[]",
            "{}",
            json.dumps(document | {"scheme": "other"}),
            json.dumps(document | {"keep": str(keep + 1)}),
            json.dumps(document | {"keep": str(2**32 - keep)}),
            json.dumps(document | {"report_epsilon": "2.0"}),
            json.dumps(document | {"delta": "0.1"}),
            json.dumps(document | {"trust": "central"}),
            json.dumps(document | {"decision": "stable"}),
            json.dumps(document | {"name": 'a"b'}),
            json.dumps(document | {"seed": "00"}),
            json.dumps(document | {"candidates": "1"}),
        ]
        for text in wrong:
            if '"stable"' not in text:
                with pytest.raises(ValueError, match="Expected"):
                    Task.from_json(text)
        texts = json.dumps([task.to_json(), *wrong])
        found = in_node(tmp_path, REFUSALS, f"refusals(Quorate, {texts})")
        assert found[0] is None
        for text, refusal in zip(wrong, found[1:], strict=True):
            assert refusal is not None, text
            assert refusal.startswith(("Expected", "The task")), refusal

    def test_a_server_counts_what_devices_send(self, tmp_path):
        task = Task.local(name="t", candidates=1000, epsilon=8.0)
        call = f"messages(Quorate, {json.dumps(task.to_json())}, 40, [777, 777, 3])"
        made = [bytes.fromhex(each) for each in in_node(tmp_path, MESSAGES, call)]
        assert len(set(made)) == 40
        tally = Server(task).collect(made)
        assert (tally.accepted, tally.dropped, tally.winner) == (40, {}, 777)


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_browser_makes_the_same_bytes_and_messages_that_count(tmp_path):
    task = Task.local(name="t", candidates=1000, epsilon=8.0)
    page = tmp_path / "page.html"
    script = "\n".join((client_script(), STORAGE, COMPARE, MESSAGES))
    call = (
        f"window.found = Promise.all([compare(Quorate, {json.dumps(stored_answers())}), "
        f"messages(Quorate, {json.dumps(task.to_json())}, 40, [777, 5, 777])])"
        ".then((found) => JSON.stringify(found))"
    )
    page.write_text(f"<!doctype html><meta charset=utf-8><script>{script}\n{call}</script>")
    with open_browser(tmp_path / "profile") as browser:
        browser.open(page, width=800)
        found = browser.evaluate("window.found")
        assert browser.problems == []
    compared, made = json.loads(found)
    assert compared["wrong"] == []
    assert compared["checked"] == 8 * (24 + 5)
    tally = Server(task).collect([bytes.fromhex(each) for each in made])
    assert (tally.accepted, tally.winner) == (40, 777)
