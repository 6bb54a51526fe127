"""Folders of text files: what is no text is named, and no page upsets the reader."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from himecat.errors import DataError
from himecat.input.problems import Problems
from himecat.input.text_folders import folder_texts, html_text, text_files


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p a='x > y'>seen", "seen"),
        ("1 < 2 <b>and</b> 3 > 2", "1 < 2 and 3 > 2"),
        ("<!-- <p>no --><script>if (a<b) '</p>'</script >yes", "yes"),
        ("<template><p>no</p></template>yes", "yes"),
        ("<![if IE]>yes<![endif]><![x[ no", "yes"),
        # A quotation mark that does not end takes nothing away but its tag.
        ("<p a='>one <b>two</b> and it", "one two and it"),
        ("<p>one <b", "one <b"),
        ("&lt;i&gt; &#99999999999999; &#xD800; &#" + "9" * 5_000 + ";.", "<i> \ufffd \ufffd \ufffd."),
    ],
)
def test_pages(page: str, text: str) -> None:
    assert html_text(page) == text


@pytest.mark.parametrize("piece", ["<a ", "<", "<a b='", "<!--", "<![CDATA[", "</a ", "<?x "])
def test_the_time_for_a_page_grows_with_its_length_only(piece: str) -> None:
    # Half a million tags, each looked for to the end of the page, would take an hour.
    html_text(piece * 500_000)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_named_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a fox")
    os.mkfifo(tmp_path / "b.txt")
    (tmp_path / "c.txt").symlink_to("/dev/zero")
    problems = Problems()
    found = [fields and fields["text"] for _, fields in folder_texts(tmp_path, problems, False)]
    assert found == ["a fox", None, None]
    assert "2 documents" in str(next(iter(problems)))
    assert "no file but a pipe, a device or the like" in str(next(iter(problems)))


def test_a_folder_that_cannot_be_entered_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    enter = os.scandir

    def refuse(path: str) -> object:
        if os.fspath(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return enter(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(DataError, match=r"closed: the folder cannot be read \(Permission denied\)"):
        list(text_files(tmp_path))
