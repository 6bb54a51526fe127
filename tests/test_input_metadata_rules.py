"""Metadata as people have them: dates, numbers and several values in one string, found and kept."""

from __future__ import annotations

import csv
import datetime
import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from himecat import Default, HiMeCat, read_corpus
from himecat.errors import DataError, UsageError
from himecat.input.builder import load_corpus
from himecat.input.dates import Date, order_of, read_date
from himecat.input.documents import Fields
from himecat.input.kinds import Kind, kind_of, named
from himecat.input.learned_rules import learn_rule
from himecat.input.numbers import borders_of, mark_of, number_text, read_number
from himecat.input.problems import Problems
from himecat.input.rules import Dates, Groups, Listed, Rule, rule_from_state

TAGS = ("red", "old", "new", "wild", "tame", "rare", "loud")
SURNAMES = ("Smith", "Jones", "Brown", "Wood", "Lee", "Thomas", "Gray", "Hill")
FIRST_NAMES = ("John", "Ann", "Eve", "Jim", "Thomas", "Zoe")
TINY = Default(min_count=1)


def learned(values: list[str], kind: str | None = None) -> Rule | None:
    names = list(dict.fromkeys(values))
    counts = np.array([values.count(name) for name in names], dtype=np.int64)
    found = learn_rule("field", None if kind is None else kind_of(kind), names, counts)
    return None if found is None else found.rule


def days(first: datetime.date, span: int, count: int = 200) -> list[datetime.date]:
    return [first + datetime.timedelta(days=row * span // count) for row in range(count)]


class TestDates:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("2024-05-01", Date(2024, 5, 1)),
            ("2024-05-01T10:11:12.5+02:00", Date(2024, 5, 1)),
            ("2024-05-01 10:11", Date(2024, 5, 1)),
            ("2024/5/1", Date(2024, 5, 1)),
            ("2024-05", Date(2024, 5)),
            ("31.12.2023", Date(2023, 12, 31)),
            ("31-12-2023", Date(2023, 12, 31)),
            ("Fri, 3 May 2024 10:00:00 GMT", Date(2024, 5, 3)),
            ("3rd Sept. 2024", Date(2024, 9, 3)),
            ("December 24, 2023", Date(2023, 12, 24)),
            ("03-Jan-2020", Date(2020, 1, 3)),
            ("20240501", Date(2024, 5, 1)),
            ("1999", Date(1999)),
            ("1.2.24", Date(2024, 2, 1)),
            ("1.2.99", Date(1999, 2, 1)),
            ("2024-02-30", None),
            ("12 monkeys 1995", None),
            ("1.2.3", None),
            ("2024.5", None),
            ("a day in May", None),
            ("", None),
        ],
    )
    def test_forms(self, text: str, found: Date | None) -> None:
        assert read_date(text) == found

    @given(st.dates(datetime.date(1000, 1, 1)), st.sampled_from(["dmy", "mdy"]))
    def test_every_day_is_read_as_it_was_written(self, day: datetime.date, order: str) -> None:
        expected = Date(day.year, day.month, day.day)
        form = "%d/%m/" if order == "dmy" else "%m/%d/"
        year = f"{day.year:04}"
        assert read_date(day.isoformat(), order, certain=True) == expected
        assert read_date(day.strftime(form) + year, order, certain=True) == expected
        assert Dates("day").values(day.isoformat()) == (day.isoformat(),)

    @given(st.lists(st.dates(datetime.date(1990, 1, 1)), min_size=1), st.sampled_from(["dmy", "mdy"]))
    def test_the_order_is_never_the_wrong_one(self, given_days: list[datetime.date], order: str) -> None:
        form = "%d/%m/%Y" if order == "dmy" else "%m/%d/%Y"
        found = order_of([day.strftime(form) for day in given_days])
        if any(day.day > 12 for day in given_days):
            assert found == order
        elif any(day.day != day.month for day in given_days):
            assert found is None

    @given(st.text(max_size=70))
    def test_any_text_is_a_date_or_none(self, text: str) -> None:
        found = read_date(text)
        assert found is None or found.ordinal > 0

    @pytest.mark.parametrize(
        ("first", "span", "step"),
        [((2015, 1, 1), 3000, "year"), ((2022, 3, 1), 700, "month"), ((2022, 3, 1), 8, "day")],
    )
    @pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%B %d, %Y"])
    def test_the_step_follows_the_spread(
        self, first: tuple[int, int, int], span: int, step: str, form: str
    ) -> None:
        found = learned([day.strftime(form) for day in days(datetime.date(*first), span)])
        if step == "day" and form == "%d/%m/%Y":
            assert found is None  # the 1st to the 8th of March, or the 3rd of January to August
        else:
            assert isinstance(found, Dates)
            assert found.step == step

    def test_years_that_do_not_come_back_become_decades(self) -> None:
        assert learned([f"{year}-01-05" for year in range(1800, 2000, 2)]) == Dates("decade")

    def test_day_and_month_in_doubt(self) -> None:
        doubtful = [f"0{1 + row % 9}/0{1 + row % 7}/2023" for row in range(60)]
        assert learned(doubtful) is None
        # The year is the same either way.
        over_years = [f"0{1 + row % 9}/0{1 + row % 7}/{2010 + row % 12}" for row in range(60)]
        assert learned(over_years) == Dates("year")
        assert learned([*doubtful, "31/01/2023"]) == Dates("month", "dmy")
        assert learned([*doubtful, "01/31/2023"]) == Dates("month", "mdy")
        with pytest.raises(DataError, match=r"'02/02/2023'|leaves open whether .*field:month\(dmy\)"):
            learned(doubtful, "month")
        assert learned(doubtful, "month(mdy)") == Dates("month", "mdy")

    def test_what_is_no_date(self) -> None:
        assert learned([str(year) for year in range(1950, 2020)] * 3) is None
        assert learned([f"1.{minor}.{patch}" for minor in range(9) for patch in range(9)]) is None
        assert learned([f"2024-01-{row % 28 + 1:02}" for row in range(50)] + ["soon"] * 10) is None


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "mark", "found"),
        [
            ("12", ".", 12.0),
            ("-12.50", ".", -12.5),
            ("1,234,567.8", ".", 1234567.8),
            ("1.234,5", ",", 1234.5),
            ("1 234", ".", 1234.0),
            ("€ 12.50", ".", 12.5),
            ("12,50 €", ",", 12.5),
            ("7 %", ".", 7.0),
            (".5", ".", 0.5),
            ("1e-05", ".", 1e-05),
            ("12,5", ".", None),
            ("1,23,456", ".", None),
            ("1e999", ".", None),
            ("nan", ".", None),
            ("$", ".", None),
            ("12 kg", ".", None),
            ("1.0.2", ".", None),
        ],
    )
    def test_forms(self, text: str, mark: str, found: float | None) -> None:
        assert read_number(text, mark) == found

    def test_the_mark_is_found_from_all(self) -> None:
        assert mark_of(["1,250", "12,5"]) == ","
        assert mark_of(["1.250", "12.5"]) == "."
        assert mark_of(["1,250", "2,500"]) is None
        assert mark_of(["1.5", "1,5"]) is None

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_a_number_is_read_as_it_was_written(self, number: float) -> None:
        if len(number_text(number)) <= 40:
            assert read_number(number_text(number)) == number
        assert read_number(repr(number)) == number

    @given(st.text(max_size=50), st.sampled_from([".", ","]))
    def test_any_text_is_a_number_or_none(self, text: str, mark: str) -> None:
        found = read_number(text, mark)
        assert found is None or abs(found) < np.inf

    @given(
        st.lists(st.floats(-1e9, 1e9).map(lambda x: round(x, 3)), min_size=2, max_size=300),
        st.integers(2, 10),
    )
    def test_borders(self, numbers: list[float], groups: int) -> None:
        given_numbers = np.array(numbers)
        borders = borders_of(given_numbers, np.ones(len(numbers), dtype=np.int64), groups)
        assert list(borders) == sorted(set(borders))
        assert len(borders) < groups
        assert bool(borders) == (len(set(numbers)) > 1)
        # No group is empty, and the names tell the groups apart.
        sizes = np.bincount(np.searchsorted(borders, given_numbers, side="right"), minlength=len(borders) + 1)
        assert not borders or sizes.min() > 0
        if borders:
            rule = Groups(borders)
            assert len(set(rule.names)) == len(borders) + 1
            for number, group in zip(
                numbers, np.searchsorted(borders, given_numbers, side="right"), strict=True
            ):
                assert rule.values(repr(number)) == (rule.names[group],)
            assert rule.values("-1e200") == (rule.names[0],)
            assert rule.values("1e200") == (rule.names[-1],)

    def test_groups_are_about_equally_large_and_borders_short(self) -> None:
        numbers = np.exp(np.random.default_rng(0).normal(3, 1, 2000)).round(2)
        borders = borders_of(numbers, np.ones(2000, dtype=np.int64), 10)
        sizes = np.diff([0, *np.searchsorted(np.sort(numbers), borders), 2000])
        assert len(borders) == 9
        assert sizes.min() >= 130
        assert sizes.max() <= 260
        assert max(len(number_text(border)) for border in borders) <= 3

    def test_what_becomes_groups(self) -> None:
        drawn = random.Random(0)
        prices = [f"{drawn.lognormvariate(3, 1):.2f}" for _ in range(300)]
        assert isinstance(learned(prices), Groups)
        assert learned([price.replace(".", ",") for price in prices]) == Groups(
            learned(prices).borders,  # type: ignore[union-attr]
            ",",
        )
        assert isinstance(learned([str(int(drawn.lognormvariate(9, 2))) for _ in range(300)]), Groups)

    @pytest.mark.parametrize(
        "values",
        [
            [str(drawn) for drawn in (1, 2.5, 3, 3.5, 5) for _ in range(20)],
            [f"{1067 + row % 90:05}" for row in range(300)],
            [f"{10000 + row * 37}" for row in range(300)],
            [str(row) for row in range(300)],
            [str(row * 50) for row in range(1, 300)],
            [str(1950 + row % 74) for row in range(300)],
            [f"0{row * 3.7:.2f}" for row in range(100)],
            ["1,250", "2,500", "7,100"] * 20 + [f"{row},{row * 7 % 900 + 100}" for row in range(1, 90)],
            [f"{row / 7:.3f}" for row in range(90)] + ["about 3"] * 5,
        ],
        ids=["ratings", "postcodes", "codes", "row numbers", "ids", "years", "zeros", "in doubt", "not all"],
    )
    def test_what_stays_a_name(self, values: list[str]) -> None:
        assert learned(values) is None

    def test_asked_for(self) -> None:
        assert learned(["1", "2", "3", "4", "x"] * 10, "number") == Groups((2.0, 3.0, 4.0))
        with pytest.raises(DataError, match="field: no value is a number, such as 'red'"):
            learned(["red", "old"], "number")


class TestLists:
    @staticmethod
    def cells(separator: str, count: int = 60) -> list[str]:
        drawn = random.Random(1)
        return [separator.join(drawn.sample(TAGS, drawn.randint(1, 4))) for _ in range(count)]

    @pytest.mark.parametrize("separator", ["; ", ";", "|", " | ", ", ", ","])
    def test_found(self, separator: str) -> None:
        assert learned(self.cells(separator)) == Listed(separator.strip())

    def test_what_stays_whole(self) -> None:
        drawn = random.Random(2)
        people = [f"{drawn.choice(SURNAMES)}, {drawn.choice(FIRST_NAMES)}" for _ in range(300)]
        assert learned(people) is None
        assert learned([*people, *SURNAMES * 5]) is None
        assert Listed(";") == learned(
            ["; ".join(drawn.sample(people, drawn.randint(1, 3))) for _ in range(200)]
        )
        towns = [
            f"{town}, {land}" for town, land in zip(SURNAMES * 9, ("UK", "France", "Peru") * 24, strict=True)
        ]
        assert learned(towns) is None
        products = [f"{name} cable {row}, black, {row % 3} m" for row, name in enumerate(SURNAMES * 9)]
        assert learned(products) is None
        pages = [f"About {name} {row} | Our site" for row, name in enumerate(SURNAMES * 9)]
        assert learned(pages) is None
        prose = [
            f"However, the {a} one of {row} came; {a}, as ever, of {row}." for row, a in enumerate(TAGS * 9)
        ]
        assert learned(prose) is None
        assert learned([f"{a} &amp; {b}" for a in TAGS for b in TAGS]) is None
        departments = ["Food; Drinks", "Toys; Games", "Books; Maps", "Arts; Crafts", "Home; Garden"] * 20
        assert learned(departments) is None

    def test_asked_for(self) -> None:
        assert learned(["a/b", "c"], "list(/)") == Listed("/")
        assert learned(["Smith, John"], "list") == Listed(",")
        with pytest.raises(DataError, match=r"none of `;`, `\|` and `,` stands in its values"):
            learned(["a/b"], "list")

    @given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters=";&"), min_size=1), max_size=6))
    def test_parts_come_back(self, parts: list[str]) -> None:
        stripped = list(dict.fromkeys(part.strip() for part in parts if part.strip()))
        if len(parts) > 1:
            assert list(Listed(";").values("; ".join(parts))) == stripped


@given(st.lists(st.text(max_size=20) | st.integers().map(str) | st.floats().map(str) | st.dates().map(str)))
@settings(max_examples=200)
def test_whatever_is_learned_can_be_kept_and_applied(values: list[str]) -> None:
    rule = learned(values)
    if rule is not None:
        again = rule_from_state(json.loads(json.dumps(rule.state())))
        assert again == rule
        for value in values:
            found = rule.values(value)
            assert found is None or all(part and part == part.strip() for part in found)


class TestKinds:
    def test_names_and_kinds(self) -> None:
        assert named(["a", "b:month", "c: list( ; )", "d:list(:)", "e:LIST(,)"]).kinds == {
            "b": Kind("month"),
            "c": Kind("list", ";"),
            "d": Kind("list", ":"),
            "e": Kind("list", ","),
        }

    def test_names_with_colons(self) -> None:
        assert named(["dc:creator", "dc:date:auto", "x:day:name"]).names == ("dc:creator", "dc:date", "x:day")
        assert named({"dc:date": None, "x:day": "name"}).names == ("dc:date", "x:day")

    @pytest.mark.parametrize(
        "written", ["moth", "number(5)", "month(ymd)", "list()", "name()", "", "a b", "("]
    )
    def test_wrong_kinds(self, written: str) -> None:
        with pytest.raises(UsageError, match="the kinds are name"):
            named({"created": written})

    @given(
        st.dictionaries(
            st.text(min_size=1).filter(str.strip),
            st.none() | st.sampled_from(["name", "number", "list(;)", "list(\\t)", "month(dmy)", "auto"]),
        )
    )
    def test_what_is_written_means_the_same(self, metadata: dict[str, str | None]) -> None:
        found = named(metadata)
        assert named(found.written()) == found

    @pytest.mark.parametrize(
        ("metadata", "message"),
        [
            (["created:moth"], "'created' cannot be taken as 'moth', the kinds are name"),
            (["craeted"], "no document has the metadata field 'craeted'; did you mean 'created'?"),
            (["dc:date"], "write 'dc:date:auto' for the field 'dc:date'."),
            (["created:number"], "created: no value is a number, such as '2024-01-01'"),
            ({"created": "moth"}, "Metadata cannot be taken as 'moth'"),
            ({"created": 5}, "The kind of the metadata field 'created' is a string"),
        ],
    )
    def test_fit_says_what_is_wrong(self, metadata: Any, message: str) -> None:
        documents = [
            {"text": text, "labels": text, "created": "2024-01-01", "dc:date": "x"} for text in ("fox", "car")
        ]
        with pytest.raises((DataError, UsageError)) as caught:
            HiMeCat(metadata=metadata, method=TINY).fit(documents)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


# -- from documents to a model and back ----------------------------------------------------------------


def shop(count: int = 60) -> list[dict[str, Any]]:
    """Documents with metadata of every kind."""
    drawn = random.Random(3)
    return [
        {
            "id": f"d{row}",
            "text": ("red fox den forest", "old car wheel engine")[row % 2] + f" item{row % 5}",
            "labels": ("animals", "things")[row % 2] if row < 20 else None,
            "created": datetime.date(2015, 1, 1) + datetime.timedelta(days=row * 50),
            "price": round(drawn.lognormvariate(3, 1)) + 0.99,
            "tags": "; ".join(drawn.sample(TAGS, drawn.randint(1, 3))),
            "rating": row % 5,
        }
        for row in range(count)
    ]


METADATA = ["created", "price", "tags", "rating"]


def written(documents: list[dict[str, Any]], folder: Path, kind: str) -> Any:
    """The documents in one of the forms that are read."""
    if kind == "list":
        return documents
    if kind in ("csv", "jsonl"):
        text = io.StringIO()
        if kind == "csv":
            table = csv.DictWriter(text, list(documents[0]))
            table.writeheader()
            table.writerows(documents)
        else:
            text.writelines(json.dumps(one, default=str) + "\n" for one in documents)
        (folder / f"docs.{kind}").write_text(text.getvalue())
        return folder / f"docs.{kind}"
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(documents)
    if kind == "numpy":
        return [{**one, "created": np.datetime64(one["created"], "ns")} for one in documents]
    if kind == "pandas":
        return frame.assign(created=pandas.to_datetime(frame["created"]))
    getattr(frame, {"xlsx": "to_excel", "parquet": "to_parquet"}[kind])(folder / f"docs.{kind}", index=False)
    return folder / f"docs.{kind}"


@pytest.mark.parametrize("kind", ["list", "csv", "jsonl", "numpy", "pandas", "xlsx", "parquet"])
def test_every_source_gives_the_same_values(kind: str, tmp_path: Path) -> None:
    found = load_corpus(written(shop(), tmp_path, kind), Fields(metadata=tuple(METADATA)))
    expected = load_corpus(shop(), Fields(metadata=tuple(METADATA)))
    for name, column in found.corpus.metadata.items():
        assert column.vocabulary.names == expected.corpus.metadata[name].vocabulary.names
        assert column.vocabulary.rule == expected.corpus.metadata[name].vocabulary.rule
        assert column.values.values.tolist() == expected.corpus.metadata[name].values.values.tolist()
    assert sorted(found.corpus.metadata["created"].vocabulary.names)[0] == "2015"
    assert set(found.corpus.metadata["tags"].vocabulary.names) == set(TAGS)
    assert set(found.corpus.metadata["rating"].vocabulary.names) == set("01234")
    assert [str(note).split(" ")[0] for note in found.problems.of("note")] == ["created:", "price:", "tags:"]


def test_lists_are_taken_as_they_are() -> None:
    documents = [
        {"text": "a hen", "tags": [one["tags"]], "price": [one["price"]], "created": (one["created"],)}
        for one in shop()
    ]
    loaded = load_corpus(documents, Fields(metadata=("tags", "price", "created")))
    assert not list(loaded.problems)
    for name, column in loaded.corpus.metadata.items():
        assert column.vocabulary.rule is None
        assert set(column.vocabulary.names) == {str(one[name]) for one in shop()}
    asked = named(["tags:list(;)", "created:year"])
    values = load_corpus(documents, Fields(metadata=asked.names, kinds=asked.kinds)).corpus.metadata
    assert set(values["tags"].vocabulary.names) == set(TAGS)
    assert values["created"].vocabulary.names[0].startswith("20")


def test_a_bar_separates_values_in_csv_unless_they_are_names(tmp_path: Path) -> None:
    (tmp_path / "docs.csv").write_text("text,tags\na hen,farm|red\na fox,red\n")
    assert set(read_corpus(tmp_path / "docs.csv", metadata="tags").metadata["tags"].vocabulary.names) == {
        "farm",
        "red",
    }
    whole = read_corpus(tmp_path / "docs.csv", metadata="tags:name").metadata["tags"]
    assert set(whole.vocabulary.names) == {"farm|red", "red"}


def test_what_cannot_be_read_is_missing_and_counted_once() -> None:
    documents = shop()
    for row in (3, 7, 9, 11):
        documents[row]["price"] = "on request" if row < 10 else "n/a"
    kinds = {"price": Kind("number")}
    loaded = load_corpus(documents, Fields(metadata=("price",), kinds=kinds))
    assert [str(one) for one in loaded.problems.of("warning")] == [
        "3 documents (document 3, document 7, document 9): the metadata field 'price' holds no number that can be "
        "read: it is taken as missing."
    ]
    assert np.flatnonzero(loaded.corpus.metadata["price"].values.lengths == 0).tolist() == [3, 7, 9, 11]


class TestModel:
    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> HiMeCat:
        return HiMeCat(metadata=METADATA, method=TINY, threads=1).fit(shop())

    def test_documents_of_the_fit_are_read_alike(self, model: HiMeCat, tmp_path: Path) -> None:
        for kind in ("list", "csv", "jsonl"):
            corpus = model.encode(written(shop(), tmp_path, kind))
            fitted = model._kept().corpus
            for name in METADATA:
                assert (
                    corpus.metadata[name].values.values.tolist()
                    == fitted.metadata[name].values.values.tolist()
                )

    def test_new_values(self, model: HiMeCat) -> None:
        problems = Problems()
        rule = model.space_.values["price"].rule
        assert isinstance(rule, Groups)
        new = [
            {"text": "fox", "price": 1e9, "created": "3.4.2018", "tags": ["red; old"]},
            {"text": "fox", "price": "-3", "created": datetime.datetime(2018, 5, 5, 3)},
            {"text": "fox", "price": "cheap", "created": "2031-01-01", "rating": 1},
        ]
        ((_, corpus),) = model._read_new(new, problems, None)

        def values(name: str, row: int) -> list[str]:
            column = corpus.metadata[name]
            return [column.vocabulary.names[number] for number in column.values[row].tolist()]

        assert [values("price", row) for row in range(3)] == [[rule.names[-1]], [rule.names[0]], []]
        assert [values("created", row) for row in range(3)] == [["2018"], ["2018"], []]
        assert values("tags", 0) == ["red", "old"]
        assert [str(one) for one in problems.of("warning")] == [
            "document 2: the metadata field 'price' holds no number that can be read: it is taken as missing."
        ]

    def test_a_saved_model_reads_as_before(self, model: HiMeCat, tmp_path: Path) -> None:
        model.save(tmp_path / "model")
        again = HiMeCat.load(tmp_path / "model")
        assert again.metadata == METADATA
        new = shop(80)[60:]
        assert np.array_equal(again.predict_proba(new), model.predict_proba(new))
        labels = ["animals", "things"] * 10
        assert again.score(new, labels) == model.score(new, labels)
        rules = json.loads((tmp_path / "model" / "model.json").read_text())["metadata_rules"]
        assert rules["tags"] == {"kind": "list", "separator": ";"}
        assert list(rules) == ["created", "price", "tags"]

    def test_explain_and_review_show_groups_and_what_was_written(self) -> None:
        # A type whose learned weight is 0 would not be shown.
        method = Default(min_count=1, learn_trust=False)
        model = HiMeCat(metadata=METADATA, method=method, threads=1).fit(shop())
        found = model.explain("animals").metadata
        assert {one.name for one in found["created"]} <= {str(year) for year in range(2015, 2024)}
        assert {one.name for one in found["price"]} <= set(model.space_.values["price"].rule.names)
        rows = model.review(shop(), count=3)
        prices = {str(one["price"]) for one in shop()}
        assert all(set(row["price"]) <= prices for row in rows)

    @pytest.mark.parametrize("kind", ["list", "csv"])
    def test_corrections_with_new_documents(self, kind: str, tmp_path: Path) -> None:
        model = HiMeCat(metadata=METADATA, method=TINY, threads=1).fit(shop())
        new = [{**one, "labels": "animals"} for one in shop(62)[60:]]
        answers = written(new, tmp_path, kind)
        rules = {name: values.rule for name, values in model.space_.values.items()}
        assert "2 answers" in model.correct(answers).said
        kept = model._kept().corpus
        assert {name: values.rule for name, values in model.space_.values.items()} == rules
        assert len(kept) == 62
        for name in ("created", "price", "tags"):
            assert len(kept.metadata[name].values[60]) >= 1
        assert len(kept.metadata["tags"].values[60]) == len(new[0]["tags"].split(";"))

    def test_kinds_are_kept(self, tmp_path: Path) -> None:
        metadata = ["created:month", "dc:date:auto", "rating:name"]
        documents = [{**one, "dc:date": one["rating"]} for one in shop()]
        model = HiMeCat(metadata=metadata, method=TINY, threads=1).fit(documents)
        model.save(tmp_path / "model")
        again = HiMeCat.load(tmp_path / "model")
        assert again.metadata == {"created": "month", "dc:date": "auto", "rating": "name"}
        assert again.metadata_ == ("created", "dc:date", "rating")
        assert "2015-01" in again.space_.values["created"].names
        again.fit(documents)
        assert again.space_.values["created"].rule == Dates("month")

    def test_a_damaged_rule_is_refused(self) -> None:
        for state in ({"kind": "magic"}, {"kind": "number", "mark": ".", "borders": [2, 1]}):
            with pytest.raises(ValueError, match="this version does not know"):
                rule_from_state(state)

    def test_a_corpus_carries_its_rules(self) -> None:
        corpus = read_corpus(shop(), metadata=METADATA)
        labels = [one["labels"] for one in shop()]
        model = HiMeCat(metadata=METADATA, method=TINY, threads=1).fit(corpus, labels)
        assert np.array_equal(
            model.predict_proba(shop()),
            HiMeCat(metadata=METADATA, method=TINY, threads=1).fit(shop()).predict_proba(shop()),
        )
        assert corpus.take(range(20)).recounted().metadata["price"].vocabulary.rule is not None
