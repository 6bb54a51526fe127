"""Tables: the right numbers, the right marks, and text that its style can read."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

from himecat.compare.protocol.run import Run
from himecat.compare.protocol.runner import failures
from himecat.compare.protocol.statistics import DatasetStatistics, MetadataStatistics
from himecat.compare.protocol.summaries import find_sweeps, row_of, summarise_runs
from himecat.compare.protocol.table_styles import render
from himecat.compare.protocol.tables import (
    ablation_tables,
    comparison_tables,
    dataset_tables,
    significance_tables,
    sweep_tables,
)
from himecat.errors import UsageError
from himecat.input.builder import load_corpus
from himecat.input.dataset import open_dataset
from himecat.input.documents import Fields
from himecat.sample import write_sample

NOISE = (0.0, 0.011, -0.008, 0.004, -0.005)


def runs(
    system: str,
    micro: float,
    *,
    title: str = "",
    dataset: str = "letters",
    draws: int = 5,
    noise: int = 1,
    parameters: dict[str, Any] | None = None,
) -> list[Run]:
    found = []
    for draw in range(draws):
        score = micro + NOISE[(noise * draw) % 5]
        leaf, overall = ({"micro": s, "macro": s - 0.05} for s in (score, score + 0.1))
        found.append(
            Run(
                dataset, system, title or system, parameters or {}, draw, 0, leaf, overall, 12.5, 40.0, 2048.0
            )
        )
    return found


def lines(markdown: str) -> dict[str, list[str]]:
    """The cells of each row by its first one."""
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
    return {row[0]: row[1:] for row in cells}


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


SYSTEMS = [*runs("ours", 0.7, title="Ours"), *runs("worse", 0.5, noise=2), *runs("better", 0.8, noise=2)]


def test_mean_sd_stars_and_the_best_in_bold() -> None:
    rows = lines(render(comparison_tables(SYSTEMS, "ours"), "markdown"))
    assert rows["Ours"][0] == "0.7004 ± 0.0075"
    assert rows["worse"][0] == r"0.5004 ± 0.0075\*\*"
    assert rows["better"][0] == r"**0.8004 ± 0.0075**\*\*↑"
    assert rows["Ours"][4:] == ["5", "12.5 s", "40.0 s", "2.0 GB"]


def test_ours_comes_last_and_the_others_keep_their_order() -> None:
    assert list(lines(render(comparison_tables(SYSTEMS, "ours"), "markdown"))) == [
        "System",
        "worse",
        "better",
        "Ours",
    ]


def test_without_ours_there_are_no_stars() -> None:
    text = render(comparison_tables(SYSTEMS, "nobody"), "markdown")
    assert r"\*" not in text
    assert "p < .05" not in text.replace("\\", "")


def test_one_run_has_neither_sd_nor_star() -> None:
    once = [*runs("ours", 0.7, draws=1), *runs("worse", 0.1, draws=1)]
    assert lines(render(comparison_tables(once, "ours"), "markdown"))["worse"][0] == "0.1000"


def test_equal_means_are_all_bold() -> None:
    rows = lines(render(comparison_tables([*runs("a", 0.5), *runs("b", 0.5)], "a"), "markdown"))
    assert rows["a"][0] == rows["b"][0] == "**0.5004 ± 0.0075**"


def test_failed_runs_are_told_and_not_averaged() -> None:
    failed = Run("letters", "worse", "worse", {}, 9, 0, failure="Out of memory.")
    never = Run("letters", "never", "Never", {}, 0, 0, failure="No torch.")
    text = render(comparison_tables([*SYSTEMS, failed, never], "ours"), "markdown")
    rows = lines(text)
    assert rows["worse"][0].startswith("0.5004")
    assert rows["worse"][4] == "5 of 6"
    assert rows["Never"] == ["failed"] * 4 + ["0 of 1", "–", "–", "–"]
    assert "worse failed in 1 of 6 runs: Out of memory." in text
    assert "Never failed in 1 of 1 runs: No torch." in text


def test_when_ours_failed_the_others_still_have_their_rows() -> None:
    ours = [Run("letters", "ours", "Ours", {}, 0, 0, failure="No time.")]
    rows = lines(render(comparison_tables([*ours, *runs("a", 0.5)], "ours"), "markdown"))
    assert rows["a"][0] == "**0.5004 ± 0.0075**"
    assert significance_tables([*ours, *runs("a", 0.5)], "ours") == []


def test_each_dataset_has_a_table_of_its_own() -> None:
    found = comparison_tables([*SYSTEMS, *runs("ours", 0.2, dataset="notes")], "ours")
    assert [table.caption.split(":")[0] for table in found] == ["letters", "notes"]
    # The other dataset's systems and scores have no part in it.
    assert [row[0].text for row in found[1].rows] == ["ours"]
    assert found[1].rows[0][1].bold


def test_csv_has_every_number_in_a_cell_of_its_own() -> None:
    found = {row["system"]: row for row in read_csv(render(comparison_tables(SYSTEMS, "ours"), "csv"))}
    worse = found["worse"]
    assert float(worse["leaf_micro_mean"]) == pytest.approx(0.5004)
    assert float(worse["leaf_micro_difference"]) == pytest.approx(-0.2)
    assert float(worse["leaf_micro_t_test"]) < 0.01
    assert float(worse["leaf_micro_wilcoxon"]) == pytest.approx(0.0625)
    assert worse["overall_macro_stars"] == "**"
    assert float(worse["peak_rss_mb"]) == 2048
    assert found["ours"]["leaf_micro_t_test"] == ""


def test_latex_escapes_names_and_is_balanced() -> None:
    odd = runs("odd", 0.6, title=r"R&D_50% {x} \y ~ ^ $5 #1")
    text = render(comparison_tables([*SYSTEMS, *odd], "ours"), "latex")
    assert r"R\&D\_50\% \{x\} \textbackslash{}y \textasciitilde{} \textasciicircum{} \$5 \#1" in text
    assert r"\textbf{0.8004 $\pm$ 0.0075}$^{**\uparrow}$" in text
    assert r"\multicolumn{2}{c}{Leaf} & \multicolumn{2}{c}{Overall}" in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {8}
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0


def test_markdown_escapes_names() -> None:
    text = render(comparison_tables(runs("odd", 0.6, title="a|b\n*c*_d_ <i>"), "odd"), "markdown")
    row = next(line for line in text.splitlines() if line.startswith("| a"))
    assert row.startswith(r"| a\|b \*c\*\_d\_ \<i\> | ")


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(UsageError, match="markdown, latex, csv, not 'html'"):
        render(comparison_tables(SYSTEMS, "ours"), "html")


@pytest.mark.parametrize("style", ["markdown", "latex", "csv"])
def test_no_runs_make_no_table(style: str) -> None:
    assert render(comparison_tables([], "ours"), style).strip() == ""
    assert render(dataset_tables([]), style).strip() == ""


def test_the_same_system_twice_is_told_apart_by_its_parameters() -> None:
    both = [*runs("a", 0.5, title="A"), *runs("a", 0.6, title="A", parameters={"c": 2, "deep": True})]
    rows = summarise_runs(both)["letters"]
    assert [row.name for row in rows] == ["A", "A (c = 2, deep = yes)"]
    assert row_of(rows[::-1], "a") is rows[0]


def test_ablations_have_the_full_system_first_and_stars_against_it() -> None:
    parts = [
        *runs("ours", 0.5, title="No-Metadata", noise=2, parameters={"use_metadata": False}),
        *runs("ours", 0.7, title="Ours"),
        *runs("ours", 0.695, title="Ours", noise=3, parameters={"use_hierarchy": False}),
    ]
    rows = lines(render(ablation_tables(parts), "markdown"))
    assert list(rows) == ["Model", "Ours", "No-Metadata", "use hierarchy = no"]
    assert rows["No-Metadata"][0].endswith(r"\*\*")
    assert not rows["use hierarchy = no"][0].endswith("*")


def test_two_systems_have_ablations_of_their_own() -> None:
    parts = [run for name in ("a", "b") for p in ({}, {"x": 1}) for run in runs(name, 0.5, parameters=p)]
    assert render(ablation_tables(parts), "markdown").count("without parts of") == 2


def test_sweeps_are_told_apart_and_in_order_of_their_values() -> None:
    swept = [
        run
        for name, values in (("beta", (500, 0, 50)), ("dimension", (100, 10)))
        for value in values
        for run in runs("ours", 0.5 + value / 10000, parameters={name: value})
    ]
    assert [(s.parameter, [row.name for row in s.rows]) for s in find_sweeps(swept)] == [
        ("beta", ["0", "50", "500"]),
        ("dimension", ["10", "100"]),
    ]
    text = render(sweep_tables(swept), "markdown")
    assert [line[:7] for line in text.splitlines() if line.startswith("| ")][:4] == [
        "| beta ",
        "| 0 | 0",
        "| 50 | ",
        "| 500 |",
    ]
    assert len(read_csv(render(sweep_tables(swept), "csv"))) == 5


def test_parameters_that_do_not_change_are_no_sweep() -> None:
    assert find_sweeps([*runs("a", 0.5, parameters={"c": 1}), *runs("b", 0.5, parameters={"c": 2})]) == []


def test_the_significance_table_has_both_tests() -> None:
    (table,) = significance_tables(SYSTEMS, "ours")
    assert [row[0].text for row in table.rows] == ["worse", "better"]
    assert table.rows[0][2].text == "−0.2000 (<0.0001; 0.0625)"
    assert table.rows[1][2].mark == "**↑"


def test_statistics_of_a_dataset(tmp_path: Path) -> None:
    write_sample(tmp_path, n_documents=300)
    dataset = open_dataset(tmp_path)
    loaded = load_corpus(dataset.documents, Fields(metadata=dataset.metadata))
    found = DatasetStatistics.of(dataset, loaded)
    assert (found.name, found.documents, found.leaves) == (tmp_path.name, 300, dataset.taxonomy.n_leaves)
    assert found.nodes == len(dataset.taxonomy) - 1
    assert found.words_per_document == len(loaded.corpus.tokens.values) / 300
    assert [kind.name for kind in found.metadata] == list(dataset.metadata)
    for kind in found.metadata:
        column = loaded.corpus.metadata[kind.name]
        assert kind.values == len(set(column.values.values.tolist()))
        assert 0 < kind.coverage <= 1


def test_the_dataset_table_lists_every_kind_of_metadata() -> None:
    tags, users = MetadataStatistics("tags", 1300, 0.5), MetadataStatistics("users", 20, 1.0)
    first = DatasetStatistics("letters", 1200, None, 11, 8, 3, 61.25, 900, (tags, users))
    second = DatasetStatistics("notes", 10, 4, 2, 2, 1, 3.0, 9)
    row = lines(render(dataset_tables([first, second]), "markdown"))["letters"]
    assert row == ["1,200", "–", "–", "11", "8", "3", "61.2", "900", "tags: 1,300 (50 %); users: 20 (100 %)"]
    assert lines(render(dataset_tables([second]), "markdown"))["notes"][:3] == ["10", "4", "6"]
    assert r"(50 \%)" in render(dataset_tables([first]), "latex")
    found = read_csv(render(dataset_tables([first, second]), "csv"))
    assert [(row["dataset"], row["metadata"], row["values"]) for row in found] == [
        ("letters", "tags", "1300"),
        ("letters", "users", "20"),
        ("notes", "", ""),
    ]


def test_rows_of_one_title_are_told_apart_by_system_and_parameters() -> None:
    scores = {"micro": 0.5, "macro": 0.4}
    given = [("a", {}), ("a", {"c": 2}), ("b", {})]
    runs = [Run("letters", system, "Same", chosen, 0, 0, scores, scores) for system, chosen in given]
    assert [row.name for row in summarise_runs(runs)["letters"]] == [
        "Same (a)",
        "Same (a, c = 2)",
        "Same (b)",
    ]


def test_a_name_that_latex_would_take_for_an_option_is_guarded() -> None:
    scores = {"micro": 0.5, "macro": 0.4}
    runs = [Run("letters", name, name, {}, 0, 0, scores, scores) for name in ("[v2] a", "*b", "c")]
    lines = render(comparison_tables(runs, "c"), "latex").splitlines()
    assert [line.partition(" &")[0] for line in lines if "textbf" in line] == ["{}[v2] a", "{}*b", "c"]


def test_failures_name_the_dataset_where_there_are_several() -> None:
    runs = [Run(dataset, "a", "A", {}, 0, 0, failure="No memory.") for dataset in ("letters", "notes")]
    assert failures(runs[:1]) == ["A failed in 1 run (draw 0): No memory."]
    assert failures(runs) == [
        f"{name}: A failed in 1 run (draw 0): No memory." for name in ("letters", "notes")
    ]
