"""Tables of plain text, and results that print themselves."""

import math

from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.table import (
    Column,
    Table,
    format_number,
    format_section,
    format_signed,
    format_table,
)


def test_columns_are_aligned_and_control_characters_escaped():
    rows = [("name", "loss"), ("a\x1b[2J", "0.5"), ("longer", "12.25")]
    assert format_table(rows, (1,)).splitlines() == [
        "  name     loss",
        "  a�[2J     0.5",
        "  longer  12.25",
    ]


def test_a_long_table_is_cut_with_a_count():
    section = PageSection(title="many", table_rows=[(str(i), i / 7) for i in range(30)])
    lines = format_section(section, max_rows=3).splitlines()
    assert lines == ["many", "  0       0", "  1  0.1429", "  2  0.2857", "  … and 27 more"]


def test_a_column_of_numbers_with_dots_for_zeros_is_right_aligned():
    section = PageSection(
        title="", table_head=("", "no", "yes"), table_rows=[("no", "12", "·"), ("yes", "·", "345")]
    )
    assert format_section(section).splitlines() == [
        "       no  yes",
        "  no   12    ·",
        "  yes   ·  345",
    ]


def test_numbers_have_four_digits():
    assert [format_number(value) for value in (None, float("nan"), 0.0, 1 / 3, 1e-9)] == [
        "–",
        "–",
        "0",
        "0.3333",
        "1.00e-09",
    ]


class Scores(Result):
    def to_sections(self, width):
        return [
            PageSection(
                title="<run>", text="on a & b", table_head=("", "<i>"), table_rows=[("<b>", 0.25)]
            )
        ]


def test_a_result_prints_its_sections():
    assert repr(Scores()) == "<run>  on a & b\n        <i>\n  <b>  0.25"


def test_html_of_a_result_is_escaped():
    page = Scores()._repr_html_()
    assert "<h4>&lt;run&gt;</h4>" in page
    assert "on a &amp; b" in page
    assert "<td>&lt;b&gt;</td><td>0.25</td>" in page


def test_changes_have_a_sign():
    assert [format_signed(value) for value in (0.5, -0.25, math.nan, None)] == [
        "+0.5000",
        "−0.2500",
        "–",
        "–",
    ]


def test_a_table_gives_records_csv_a_section_and_a_dataframe():
    columns = (Column("layer"), Column("standard_error", "± se", "nats", "over examples"))
    table = Table(columns, [(0, 0.25), (1, None)])
    assert table.to_records()[0] == {"layer": 0, "standard_error": 0.25}
    assert table.to_csv() == "layer,standard_error\n0,0.25\n1,\n"
    section = table.to_section("heads")
    assert list(section.table_head) == ["layer", "± se"]
    assert section.table_rows == [["0", "0.25"], ["1", "–"]]
    frame = table.to_dataframe()
    assert frame["standard_error"].isna().tolist() == [False, True]
    assert frame.attrs == {
        "units": {"standard_error": "nats"},
        "meanings": {"standard_error": "over examples"},
    }


def test_a_saved_page_has_all_rows(tmp_path):
    class Many(Result):
        def to_sections(self, width):
            return [PageSection(title="many", table_rows=[(str(index),) for index in range(50)])]

    path = Many().save(tmp_path / "many.html")
    assert path.read_text(encoding="utf-8").count("<td>") == 50
    assert "and 30 more" in Many()._repr_html_()
