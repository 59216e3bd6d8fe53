"""The page on which labels are reviewed, used in a browser as people do."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from browser import opened
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from waiting import wait_until

from kfhe.audit import label_quality
from kfhe.noise import flip_labels
from kfhe.review import (
    Decision,
    clean_file,
    read_decisions,
    write_decisions,
    write_page,
    wrong_chances,
)
from kfhe.review.page import MOST_ROWS, listed_rows

HOSTILE = [
    "</script><script>window.owned = 1</script>",
    "<img src=x onerror='window.owned = 2'>",
    "javascript:window.owned=3",
    "<!--<script>",
    "\u202ereversed\x00\u2028",
]


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"size": rng.normal(size=n).round(3), "colour": rng.choice(["red", "green"], n)})
    X["weight"] = (2 * X["size"] + rng.normal(size=n) / 4).round(3)
    X.loc[::17, "weight"] = np.nan
    kinds = np.where(X["size"] > 0.5, "large", np.where(X["colour"] == "red", "red one", "small"))
    return X, flip_labels(kinds, 0.15, random_state=seed)


@pytest.fixture(scope="module")
def audited():
    X, y = table(600)
    return X, y, label_quality(X, y, random_state=0, n_estimators=100)


@pytest.fixture(scope="module")
def files(audited, tmp_path_factory):
    """A csv file, and the page about it."""
    X, y, audit = audited
    folder = tmp_path_factory.mktemp("page")
    X.assign(kind=y).to_csv(folder / "t.csv", index=False)
    write_page(folder / "review.html", audit, X, target="kind", name="t.csv", first_row=2)
    return folder


@pytest.fixture
def ask(browser, files):
    def nothing_is_decided():
        kept = opened(browser, files / "review.html")("return localStorage.length")
        browser.execute_script("localStorage.clear()")  # the browser does so at its leisure
        return not kept

    wait_until(nothing_is_decided)
    browser.get_log("browser")
    yield browser.execute_script
    assert browser.get_log("browser") == []


@pytest.fixture
def press(browser):
    def keys(*pressed):
        for key in pressed:
            ActionChains(browser).send_keys(key).perform()

    return keys


def data_of(path):
    text = path.read_text()
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def heading(ask):
    return int(ask("return document.querySelector('#detail h2').textContent").removeprefix("Row "))


def exported(browser, press, folder):
    """Export the decisions, and read the file that the browser has written."""
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    press("e")
    path = folder / "decisions.csv"
    wait_until(lambda: path.exists() and path.stat().st_size)
    return path


class TestReviewing:
    def test_each_key_decides_and_goes_on_to_the_next(self, ask, press, files):
        rows = data_of(files / "review.html")["rows"]
        shown = "return [...document.querySelectorAll('.item .state')].slice(0, 6).map((s) => s.textContent)"
        press("s", "k", "d", "u", "1", "3")
        classes = ["large", "red one", "small"]
        first = [classes[rows[0]["suggested"]], "kept", "drop", "can't tell"]
        by_number = [
            "kept" if classes[rows[place]["given"]] == name else f"→ {name}"
            for place, name in ((4, "large"), (5, "small"))
        ]
        assert ask(shown) == [f"→ {first[0]}", *first[1:], *by_number]
        assert heading(ask) == rows[6]["row"]
        assert "6 of" in ask("return document.getElementById('count').textContent")
        assert "6 of" in ask("return document.getElementById('live').textContent")

    def test_undo_takes_back_step_by_step(self, ask, press, files):
        rows = data_of(files / "review.html")["rows"]
        press("s", "k", "z")
        assert heading(ask) == rows[1]["row"]
        ActionChains(ask.__self__).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
        assert heading(ask) == rows[0]["row"]
        assert ask("return document.getElementById('count').textContent").startswith("0 of")
        press("z")
        assert ask("return document.getElementById('live').textContent") == "There is nothing to undo."

    def test_the_keyboard_is_enough(self, ask, press, files):
        rows = data_of(files / "review.html")["rows"]
        press(Keys.ARROW_DOWN, "n", Keys.ARROW_UP, "n", "p")
        assert heading(ask) == rows[1]["row"]
        press(Keys.END)
        assert heading(ask) == rows[-1]["row"]
        press(Keys.HOME)
        assert heading(ask) == rows[0]["row"]
        press("t", "looks odd, k", Keys.ESCAPE, "c", Keys.ARROW_DOWN, Keys.ESCAPE)
        assert ask("return document.activeElement.id") == "list"
        assert ask("return document.getElementById('note').value") == "looks odd, k"
        assert heading(ask) == rows[0]["row"], "choosing is not deciding"
        press("c", Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
        assert heading(ask) == rows[1]["row"]
        press("?")
        assert ask("return document.getElementById('help').open")
        press(Keys.ESCAPE, "o")
        assert ask("return document.getElementById('overview').open")
        press(Keys.ESCAPE, "/", "red", Keys.ESCAPE)
        assert ask("return document.getElementById('search').value") == "red"

    def test_every_button_does_what_its_key_does(self, ask, files):
        rows = data_of(files / "review.html")["rows"]
        for place in range(4):
            ask(f"document.querySelectorAll('.actions button')[{place}].click()")
        states = ask(
            "return [...document.querySelectorAll('.item .state')].slice(0, 4).map((s) => s.className)"
        )
        assert states == ["state keep", "state change", "state drop", "state unsure"]
        ask("document.querySelectorAll('.actions button')[4].click()")
        assert heading(ask) == rows[3]["row"]
        ask(
            "const choice = document.getElementById('choice'); choice.selectedIndex = 2;"
            "choice.dispatchEvent(new Event('change'))"
        )
        assert ask("return document.querySelectorAll('.item .state')[3].className") == "state change"

    def test_who_tabs_to_a_button_stays_there(self, ask, press):
        ask("document.querySelectorAll('.actions button')[2].focus()")
        press(Keys.ENTER, Keys.ENTER, Keys.SPACE)
        assert ask("return document.getElementById('count').textContent").startswith("3 of")
        assert ask("return document.activeElement.getAttribute('aria-keyshortcuts')") == "d"

    def test_decisions_are_there_after_a_reload(self, ask, press, browser, files):
        press("s", "t", "sure of it", Keys.ESCAPE, "d")
        rows = data_of(files / "review.html")["rows"]
        browser.refresh()
        assert ask("return document.getElementById('count').textContent").startswith("2 of")
        assert heading(ask) == rows[2]["row"]
        press(Keys.ARROW_UP)
        assert ask("return document.getElementById('note').value") == "sure of it"

    def test_the_export_is_what_apply_takes(self, ask, press, browser, files, audited, tmp_path):
        X, y, _ = audited
        rows = data_of(files / "review.html")["rows"]
        press("s", "k", "d", "u", "t", 'a, "b"\nü', Keys.ESCAPE, "s")
        decisions = read_decisions(exported(browser, press, tmp_path))
        assert [
            each.decision
            for each in sorted(decisions, key=lambda each: [r["row"] for r in rows].index(each.row))
        ] == [
            "change",
            "keep",
            "drop",
            "unsure",
            "change",
        ]
        assert 'a, "b"\nü' in [each.note for each in decisions]
        done = clean_file(decisions, files / "t.csv", tmp_path / "cleaned.csv")
        before, after = (
            (folder / name).read_text().splitlines()
            for folder, name in ((files, "t.csv"), (tmp_path, "cleaned.csv"))
        )
        for each in decisions:
            if each.decision == "change":
                before[each.row - 1] = before[each.row - 1].rpartition(",")[0] + f",{each.decided}"
        gone = [each.row - 1 for each in decisions if each.decision == "drop"]
        assert after == [line for number, line in enumerate(before) if number not in gone]
        assert len(done.changes) == 3
        assert sum(label != new for label, new in zip(y, done.labels, strict=True)) == 2
        assert len(X) == len(done.kept)

    def test_an_export_can_be_imported_elsewhere(self, ask, press, browser, files, tmp_path):
        press("s", "k", "d")
        path = exported(browser, press, tmp_path)
        decisions = read_decisions(path)
        ask("localStorage.clear()")
        browser.refresh()
        browser.find_element("id", "import").send_keys(str(path))
        wait_until(lambda: ask("return document.getElementById('count').textContent").startswith("3 of"))
        other = Decision(decisions[0].row, "r0", "kind", "small", "drop")
        write_decisions(tmp_path / "other.csv", [other])
        browser.find_element("id", "import").send_keys(str(tmp_path / "other.csv"))
        warning = "return document.getElementById('warning').textContent"
        wait_until(lambda: "Left out: 1 of 1 decision, because their rows" in ask(warning))
        (tmp_path / "no.csv").write_text("a,b\n1,2\n")
        browser.find_element("id", "import").send_keys(str(tmp_path / "no.csv"))
        wait_until(lambda: "no column row" in ask(warning))


class TestFinding:
    def count(self, ask):
        return ask("return document.getElementById('found').textContent")

    def test_a_number_of_the_matrix_lists_its_labels(self, ask, press, files):
        rows = data_of(files / "review.html")["rows"]
        press("o")
        button = "document.querySelector('#matrix button')"
        count = int(ask(f"return {button}.textContent"))
        ask(f"{button}.click()")
        assert self.count(ask) == f"{count} of {len(rows)} labels"
        pairs = (
            "return [...new Set([...document.querySelectorAll('.item .labels')].map((s) => s.textContent))]"
        )
        assert len(ask(pairs)) == 1
        ask("document.getElementById('clear').click()")
        assert self.count(ask) == f"{len(rows)} labels"

    def test_a_bar_of_the_chart_lists_the_labels_up_to_it(self, ask, press, files):
        rows = data_of(files / "review.html")["rows"]
        press("o")
        ask("document.querySelectorAll('#chart .hit')[4].dispatchEvent(new MouseEvent('click'))")
        expected = sum(row["quality"] <= 0.1 for row in rows)
        assert self.count(ask) == f"{expected} of {len(rows)} labels"
        assert ask("return document.querySelectorAll('#chart .cut').length") == 1

    def test_filters_by_state_label_and_text(self, ask, press, files):
        rows = data_of(files / "review.html")["rows"]
        press("s", "s")

        def choose(name, value):
            ask(
                "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
                "s.dispatchEvent(new Event(s.tagName === 'SELECT' ? 'change' : 'input'))",
                name,
                value,
            )

        choose("state", "judged")
        assert self.count(ask) == f"2 of {len(rows)} labels"
        choose("state", "open")
        assert self.count(ask) == f"{len(rows) - 2} of {len(rows)} labels"
        press("s")
        assert self.count(ask) == f"{len(rows) - 3} of {len(rows)} labels"
        choose("state", "all")
        choose("given", "1")
        assert self.count(ask) == f"{sum(row['given'] == 1 for row in rows)} of {len(rows)} labels"
        choose("given", "")
        choose("search", str(rows[3]["cells"][0]))
        assert heading(ask) == rows[3]["row"]
        choose("search", "nothing is like this")
        assert "No label matches" in ask("return document.getElementById('detail').textContent")


class TestEstimate:
    def test_the_page_and_python_do_the_same_sums(self, ask, press, files, audited):
        _, y, audit = audited
        text = "return document.getElementById('share').textContent"
        assert ask(text).startswith("If mistakes are random")
        press(*"sskssksssskssss")
        said = ask(text)
        rows = data_of(files / "review.html")["rows"][:15]
        places = [row["row"] - 2 for row in rows]
        judged, wrong = np.zeros(len(y), dtype=bool), np.zeros(len(y), dtype=bool)
        judged[places] = True
        wrong[places] = [
            row["given"] != row["suggested"] and key == "s"
            for row, key in zip(rows, "sskssksssskssss", strict=True)
        ]
        found = wrong_chances(audit, judged, wrong)
        assert f"Of the 15 labels you reviewed, {wrong.sum()} were wrong" in said
        low, high = (
            float(share) for share in re.search(r"of all 600: ([\d.]+)% to ([\d.]+)%", said).groups()
        )
        assert low == pytest.approx(100 * found.low, abs=0.6)
        assert high == pytest.approx(100 * found.high, abs=0.6)


class TestLooks:
    def test_it_fits_a_phone_and_the_dark(self, browser, files):
        ask = opened(browser, files / "review.html", width=390)
        assert ask("return document.documentElement.scrollWidth") <= 390
        ask("document.querySelector('.item').click()")
        assert ask("return document.documentElement.scrollWidth") <= 390
        assert ask("return document.getElementById('mailbox').offsetHeight") == 0
        ask("document.querySelector('.back').click()")
        assert ask("return document.getElementById('mailbox').offsetHeight") > 300
        light = ask("return getComputedStyle(document.body).backgroundColor")
        ask = opened(browser, files / "review.html", scheme="dark")
        dark = ask("return getComputedStyle(document.body).backgroundColor")
        brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (light, dark)]
        assert brightness[0] > 700
        assert brightness[1] < 100

    def test_a_screen_reader_is_told_what_is_what(self, ask):
        nameless = ask(
            "return [...document.querySelectorAll('button, input, select, textarea, dialog, [role]')].filter("
            "(e) => !(e.textContent.trim() || e.getAttribute('aria-label') || e.id === 'live' || e.hidden))"
            ".map((e) => e.outerHTML.slice(0, 80))"
        )
        assert nameless == []
        current = ask("return document.getElementById('list').getAttribute('aria-activedescendant')")
        assert ask(f"return document.getElementById('{current}').getAttribute('aria-selected')") == "true"
        assert (
            ask("return document.querySelectorAll('[role=option][aria-setsize][aria-posinset]').length") > 5
        )


class TestSafety:
    def test_hostile_cells_names_and_labels_are_inert(self, browser, tmp_path):
        X, y = table(200)
        X[HOSTILE[0]] = np.resize(HOSTILE, len(X))
        X["link"] = np.resize(["https://example.org/a?b=<c>", "javascript:window.owned=4"], len(X))
        y = np.where(y == "small", HOSTILE[1], y).astype(object)
        audit = label_quality(X, y, random_state=0, n_estimators=50)
        write_page(tmp_path / "p.html", audit, X, target=HOSTILE[0], name=HOSTILE[1])
        browser.get_log("browser")
        browser.get_log("performance")
        ask = opened(browser, tmp_path / "p.html")
        for key in ("o", Keys.ESCAPE, "s", "k"):
            ActionChains(browser).send_keys(key).perform()
        assert ask("return window.owned") is None
        assert ask("return document.querySelectorAll('img, #detail script').length") == 0
        links = set(ask("return [...document.querySelectorAll('#detail a')].map((a) => a.href)"))
        assert links <= {"https://example.org/a?b=%3Cc%3E"}
        assert HOSTILE[0] in ask("return document.getElementById('detail').textContent")
        assert browser.get_log("browser") == []
        assert requests(browser) <= {(tmp_path / "p.html").as_uri(), "data:,"}

    def test_nothing_is_run_but_our_own_script(self, ask, browser):
        ask(
            "const script = document.createElement('script'); script.textContent = 'window.owned = 5';"
            "document.body.append(script)"
        )
        ask("new Image().src = 'http://127.0.0.1:9/x.png'")
        assert ask("return window.owned") is None
        refused = " ".join(entry["message"] for entry in browser.get_log("browser"))
        assert refused.count("Content Security Policy") >= 2


def requests(browser):
    """Return what was asked for since the log was last read."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }


def test_ten_thousand_labels_are_no_burden(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(24_000, 5)).round(3), columns=list("abcde"))
    y = rng.integers(3, size=len(X)).astype(str)  # nobody can tell these
    audit = label_quality(X, y, random_state=0, n_estimators=10)
    assert write_page(tmp_path / "p.html", audit, X) == MOST_ROWS
    ask = opened(browser, tmp_path / "p.html")
    assert ask("return document.getElementById('found').textContent") == "10,000 labels"
    assert ask("return document.querySelectorAll('.item').length") < 60
    ActionChains(browser).send_keys(Keys.END).perform()
    assert ask("return document.getElementById('list').getAttribute('aria-activedescendant')") == "item-9999"
    ActionChains(browser).send_keys(Keys.HOME, *"sksdu" * 10).perform()
    assert ask("return document.getElementById('count').textContent") == "50 of 10,000"
    spent = ask(
        "const list = document.getElementById('list'), start = performance.now();"
        "const press = () => list.dispatchEvent(new KeyboardEvent('keydown', {key: 's', bubbles: true}));"
        "for (let i = 0; i < 20; i++) press(); return performance.now() - start"
    )
    assert spent / 20 < 200, "milliseconds for a key, on a busy machine"


class TestContent:
    def test_listed_are_the_labels_that_the_votes_disagree_with_worst_first(self, audited):
        *_, audit = audited
        rows = listed_rows(audit)
        assert (np.diff(audit.rank[rows]) > 0).all()
        disputed = np.flatnonzero(audit.suggested != audit.given)
        assert set(disputed) <= set(rows.tolist())

    def test_a_table_of_many_columns_has_fewer_rows_on_its_page(self, audited, tmp_path, monkeypatch):
        X, _, audit = audited
        monkeypatch.setattr("kfhe.review.page.MOST_CELLS", 3 * 60)
        assert write_page(tmp_path / "p.html", audit, X) == 60

    def test_evidence_names_the_column_that_tells(self, files):
        data = data_of(files / "review.html")
        names = [column["name"] for column in data["columns"]]
        assert names == ["size", "colour", "weight"]
        most = [names[row["looks"][0][0]] for row in data["rows"] if row["looks"]]
        for_colour = [
            names[row["looks"][0][0]]
            for row in data["rows"][:40]
            if {row["given"], row["suggested"]} == {1, 2}  # red or small
        ]
        assert len(most) > 50
        assert np.mean([name == "colour" for name in for_colour]) > 0.8

    def test_similar_rows_are_surely_of_their_class_and_never_the_row_itself(self, files, audited):
        _, y, audit = audited
        data = data_of(files / "review.html")
        for row in data["rows"]:
            for side, others in zip(("given", "suggested"), row["similar"], strict=True):
                assert row["row"] not in others
                assert {y[other - 2] for other in others} <= {data["classes"][row[side]]}
                assert all(audit.suggested[other - 2] == y[other - 2] for other in others)

    def test_what_is_usual_is_told_for_each_class(self, files, audited):
        X, y, audit = audited
        data = data_of(files / "review.html")
        sure = (audit.suggested == y) & ~audit.suspects & (y == "large")
        assert data["columns"][0]["usual"][0] == pytest.approx(
            X["size"][sure].quantile([0.25, 0.5, 0.75]).tolist()
        )
        assert data["columns"][1]["usual"][1][0][0] == "red"

    @pytest.mark.parametrize(
        ("of", "names"),
        [
            (lambda values: values, {"True", "False"}),
            (lambda values: np.where(values, "TRUE", "false").astype(object), {"TRUE", "false"}),
            (lambda values: np.where(values, 1, 0), {"1", "0"}),
            (lambda values: np.where(np.arange(600) % 7 == 0, np.nan, values), {"1", "0"}),
        ],
        ids=["booleans", "words", "numbers", "gaps"],
    )
    def test_of_true_and_false_it_is_how_many_are_true_in_the_tables_own_words(
        self, audited, tmp_path, of, names
    ):
        X, _, audit = audited
        values = X["size"].to_numpy() > 0
        learnt, shown = pd.DataFrame({"flag": values}), pd.DataFrame({"flag": of(values)})
        if names == {"1", "0"}:
            learnt = shown
        write_page(tmp_path / "review.html", audit, learnt, all_columns=shown)
        usual = data_of(tmp_path / "review.html")["columns"][0]["usual"]
        assert {name for of_class in usual for name, _ in of_class} <= names
        assert max(share for _, share in usual[0]) > 0.5

    def test_the_same_table_has_the_same_key_and_another_one_another(self, audited, tmp_path):
        X, y, audit = audited
        cleaned = replace(audit, given=np.where(np.arange(600) == 5, "large", y))
        keys = []
        for found, other in (
            (audit, X),
            (replace(audit, quality=audit.quality / 2), X.copy()),
            (audit, X.assign(size=X["size"] + 1)),
            (audit, X.rename(columns={"size": "length"})),
            (cleaned, X),
        ):
            write_page(tmp_path / "p.html", found, other)
            keys.append(data_of(tmp_path / "p.html")["key"])
        assert keys[0] == keys[1]
        assert len(set(keys)) == 4

    def test_without_pillow_names_of_pictures_are_text(self, audited, tmp_path, monkeypatch):
        X, _, audit = audited
        monkeypatch.setitem(sys.modules, "PIL", None)
        with pytest.warns(UserWarning, match=r"pip install \"kfhe\[review\]\""):
            write_page(tmp_path / "p.html", audit, X, all_columns=X.assign(face="a.png"), pictures=tmp_path)
        assert data_of(tmp_path / "p.html")["pictures"] == {}

    def test_a_date_is_one_column_with_usual_days(self, tmp_path):
        days = pd.date_range("2024-01-01", periods=300, freq="D")
        X = pd.DataFrame({"when": days, "noise": np.arange(300) % 7})
        y = flip_labels(np.where(days.month < 6, "early", "late"), 0.1, random_state=0)
        audit = label_quality(X, y, random_state=0, n_estimators=100)
        write_page(tmp_path / "p.html", audit, X)
        data = data_of(tmp_path / "p.html")
        assert [column["name"] for column in data["columns"]] == ["when", "noise"]
        low, middle, high = data["columns"][0]["usual"][0]
        assert "2024-01-01" < low < middle < high < "2024-06-01"
        assert data["rows"][0]["looks"][0][0] == 0
        assert data["rows"][0]["cells"][0].startswith("2024-")
