"""The pane of findings: pictures, links to heads and steps, one table of what is undecided."""

import re

import numpy as np
import pytest

from neural.findings.findings import analyze_runs
from neural.report.run_report import write_run_page
from neural.runs.run import Run
from tests.findings.symptomatic_runs import write_attention_run, write_training_runs
from tests.findings.synthetic_runs import write_seeds
from tests.findings.test_focus_checks import write_run as write_focus_run


@pytest.fixture(scope="module")
def sick(tmp_path_factory):
    """(report, runs): runs with the symptoms of all checks, each an experiment of one run."""
    root = tmp_path_factory.mktemp("sick")
    runs = [
        write_attention_run(root),
        *write_training_runs(root),
        write_focus_run(root, "soft", focus_confidence=0.5),
        write_focus_run(root, focus_accuracy_class_1=0.1, cell_ft=0.3),
    ]
    return write_run_page([run.path for run in runs], root / "report.html"), runs


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """(report, runs): five seeds whose entropy falls."""
    root = tmp_path_factory.mktemp("seeds")

    def create_data(random):
        level = 3 - np.linspace(0, 1, 11)[:, None, None]
        return {
            "arrays": {"entropy": level + 0.01 * random.normal(size=(11, 2, 2))},
            "scalars": {"valid/loss": np.exp(-np.arange(11) / 3) + 0.01 * random.random(11)},
        }

    runs = write_seeds(root, 5, create_data)
    return write_run_page([run.path for run in runs], root / "report.html"), runs


def open_findings(tab, report, width=1280):
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto(f"{report.as_uri()}#/findings")
    tab.locator(".finding").first.wait_for()
    for folded in tab.locator("summary", has_text=re.compile(r": \d+ checks?$")).all():
        folded.click()


def test_the_first_view_counts_decided_checks_apart(tab, sick):
    tab.goto(f"{sick[0].as_uri()}#/overview?run={sick[1][0].path.name}")
    link = tab.get_by_role("button", name=re.compile("^all .* with their evidence$"))
    checks, decided = map(int, re.findall(r"\d+", link.inner_text()))
    findings = analyze_runs([Run.open(sick[1][0].path)])
    assert checks == len(findings)
    assert decided == sum(finding.supported != "undecided" for finding in findings) < checks


def test_every_decided_finding_has_its_picture(tab, sick):
    open_findings(tab, sick[0])
    tab.wait_for_function("document.querySelectorAll('.figure-head-grid canvas').length > 50")
    cards = tab.locator(".finding")
    expected = {
        finding.code
        for run in sick[1]
        for finding in analyze_runs([Run.open(run.path)])
        if finding.supported != "undecided"
    }
    assert {card.get_attribute("data-code") for card in cards.all()} == expected
    assert len(expected) > 15
    drawn = tab.evaluate(
        """[...document.querySelectorAll('.finding')].map(card => {
            const picture = card.querySelector('.picture')
            const box = picture?.firstElementChild?.getBoundingClientRect()
            return [card.dataset.code, picture?.dataset.kind, box?.width ?? 0, box?.height ?? 0]
        })"""
    )
    assert all(width > 100 and height > 20 for _, _, width, height in drawn), drawn
    assert {kind for _, kind, _, _ in drawn} == {
        "head_grid",
        "phases",
        "rows",
        "curve",
        "estimates",
    }


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_leaves_its_card(tab, sick, width):
    open_findings(tab, sick[0], width)
    tab.wait_for_function("document.querySelectorAll('.figure-head-grid canvas').length > 50")
    outside = tab.evaluate(
        """[...document.querySelectorAll('.finding')].flatMap(card => {
            const outer = card.getBoundingClientRect()
            return [...card.querySelectorAll('text, a, canvas, p, span')]
                .filter(part => {
                    const box = part.getBoundingClientRect()
                    return box.width > 0 && (box.left < outer.left - 1 || box.right > outer.right + 1)
                })
                .map(part => `${card.dataset.code} ${part.textContent}`)
        })"""
    )
    assert outside == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_the_name_of_a_head_opens_that_head_at_that_step(tab, sick):
    open_findings(tab, sick[0])
    card = tab.locator('[data-code="ATT008"]')
    card.locator(".evidence").get_by_text("L2 h2", exact=True).click()
    name = sick[1][0].name
    tab.wait_for_url(
        re.compile(rf"#/attention\?run={re.escape(name)}&step=1000&layer=2&head=2(&|$)")
    )
    selected = tab.locator(".heads .selected")
    assert selected.get_attribute("title").startswith("L2 h2")


def test_a_thumbnail_opens_the_head_at_its_step(tab, sick):
    open_findings(tab, sick[0])
    card = tab.locator('[data-code="ATT008"]')
    card.get_by_label("L2 h2 at step 550", exact=True).click()
    tab.wait_for_url(re.compile(r"step=550&layer=2&head=2"))
    assert tab.locator(".heads .selected").get_attribute("title").startswith("L2 h2")


def test_marked_squares_are_those_of_the_finding(tab, sick):
    open_findings(tab, sick[0])
    grid = tab.locator('[data-code="ATT008"] .head-squares')
    assert grid.locator(".square").count() == 12
    marked = {square.get_attribute("title") for square in grid.locator(".marked").all()}
    (finding,) = [finding for finding in analyze_runs([sick[1][0]]) if finding.code == "ATT008"]
    assert len(marked) == round(12 * finding.number.value)
    assert any(title.startswith("L2 h2: previous token") for title in marked)


def test_undecided_claims_are_one_table_that_says_what_is_missing(tab, sick):
    open_findings(tab, sick[0])
    groups = tab.locator(".finding-group")
    group = groups.filter(has=tab.locator('[data-code="ATT008"]'))
    table = group.locator("table.undecided")
    assert table.count() == 1
    expected = [
        finding
        for finding in analyze_runs([sick[1][0]])
        if finding.kind == "claim" and finding.supported == "undecided"
    ]
    rows = table.locator("tbody tr").all()
    assert [row.get_attribute("data-code") for row in rows] == [item.code for item in expected]
    shown = [row.locator("td").last.inner_text() for row in rows]
    assert "needs 5 seeds, has 1" in shown
    assert group.locator("[data-code='EVO009']").count() == 0, "no text was generated"


def test_one_run_has_no_intervals_over_seeds(tab, sick):
    open_findings(tab, sick[0])
    text = tab.locator("main").inner_text()
    assert "over seeds" not in text
    assert "1 seeds" not in text
    assert not re.search(r"\bnone\b", text)


def test_estimates_show_the_numbers_of_their_finding(tab, seeds):
    open_findings(tab, seeds[0])
    (finding,) = [item for item in analyze_runs(seeds[1]) if item.code == "EVO001"]
    card = tab.locator('[data-code="EVO001"]')
    assert finding.formatted_estimate in card.inner_text()
    ends = tab.evaluate(
        """(() => {
            const figure = document.querySelector('[data-code="EVO001"] .figure-estimates')
            const toNumber = text => Number(text.replace('−', '-'))
            const value = figure.querySelector('.value').textContent
            const box = selector => figure.querySelector(selector).getBoundingClientRect()
            const [dot, bar, zero] = [box('.dot'), box('.interval'), box('.reference')]
            return {
                numbers: value.match(/[−\\d.]+/g).map(toNumber),
                dot: dot.left + dot.width / 2, low: bar.left, high: bar.right, zero: zero.left,
            }
        })()"""
    )
    number = finding.number
    np.testing.assert_allclose(ends["numbers"], [number.value, number.low, number.high], rtol=0.006)
    # pixels are linear in the numbers
    pixels = (ends["zero"] - ends["dot"]) / -number.value
    assert ends["zero"] - ends["low"] == pytest.approx(-number.low * pixels, abs=2)
    assert ends["zero"] - ends["high"] == pytest.approx(-number.high * pixels, abs=2)
    assert "95 %, over seeds" in tab.locator("main").inner_text()


def test_phases_have_a_row_of_bands_per_seed(tab, seeds):
    open_findings(tab, seeds[0])
    (finding,) = [item for item in analyze_runs(seeds[1]) if item.code == "TRN001"]
    figure = tab.locator('[data-code="TRN001"] .figure-phases')
    assert figure.locator(".best").count() == len(finding.symptoms) > 1
    assert "lowest" in figure.locator("svg").get_attribute("aria-label")


def test_the_page_has_the_findings_of_neural_analyze_in_its_order(tab, sick):
    open_findings(tab, sick[0])
    group = tab.locator(".finding-group").filter(has=tab.locator('[data-code="ATT008"]'))
    findings = analyze_runs([sick[1][0]])
    advised = [advice.code for advice in findings.advice]
    happened = [
        finding.code
        for finding in findings
        if finding.supported == "yes" and finding.code not in advised
    ]
    cards = [card.get_attribute("data-code") for card in group.locator(".finding").all()]
    assert cards == advised + happened
