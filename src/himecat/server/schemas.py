"""What the API takes and gives, as OpenAPI describes it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_ROWS = 200_000
"""So many documents may one action name."""

MOST_DOCUMENTS = 1_000
"""So many documents may one prediction have."""

Name = Annotated[str, Field(max_length=1_000)]
Path = Annotated[list[Name], Field(max_length=64, examples=[["waste", "collection"]])]
Row = Annotated[int, Field(ge=0, lt=2**31, examples=[0])]


class Given(BaseModel):
    """What is sent: nothing but what is named here."""

    model_config = ConfigDict(extra="forbid")


class Error(BaseModel):
    """One sentence that says what is wrong."""

    error: Annotated[str, Field(examples=["There is no document 7."])]


class Level(BaseModel):
    """Estimated accuracy at a level of the tree, with its 90 % interval."""

    level: int
    estimate: float
    low: float
    high: float


class About(BaseModel):
    """The model that is served."""

    name: str
    himecat: str
    tree_version: int
    model_version: int
    documents: int
    labelled: int
    answered: int
    last_action: int
    metadata: list[str]
    levels: int
    accuracy: list[Level] | None
    can_go_back: bool
    source: Literal["documents", "kept words"]
    several: bool
    knows_none: bool


class Node(BaseModel):
    """A category; `count` are the documents at or below it."""

    node: int
    parent: int | None
    name: str
    depth: int
    leaf: bool
    count: int
    labelled: int
    confidence: float | None
    accuracy: float | None


class Tree(BaseModel):
    """All categories, parents before their children."""

    tree_version: int
    nodes: list[Node]


class Answer(BaseModel):
    """What somebody said of a document; `action` is what `expected` of the next action names."""

    path: list[str] | None
    kind: Literal["accepted", "moved", "none", "skipped"]
    by: str
    at: str
    action: int


class Document(BaseModel):
    """A document, where the model places it, and what people say."""

    row: int
    id: str
    title: str | None
    text: str
    metadata: dict[str, list[str]]
    path: list[str]
    node: int
    confidence: float
    levels: list[float]
    none: float | None
    answer: Answer | None
    label: list[str] | None
    suspect: list[str] | None


class Documents(BaseModel):
    """A part of a list of documents."""

    total: int
    offset: int
    rows: list[Document]


class Alternative(BaseModel):
    """Another category that a document may belong to."""

    path: list[str]
    confidence: float


class Word(BaseModel):
    """A word that speaks for a category; spans count UTF-16 code units of the text."""

    word: str
    share: float
    spans: list[list[int]]


class MetadataReason(BaseModel):
    """A metadata value that speaks for a category."""

    type: str
    value: str
    share: float


class OtherReason(BaseModel):
    """What a view of one's own says for a category."""

    kind: str
    name: str
    share: float


class Why(BaseModel):
    """What speaks for a category, each with its share of what does."""

    path: list[str]
    words: list[Word]
    metadata: list[MetadataReason]
    other: list[OtherReason]


class WholeDocument(Document):
    """A document with its whole text."""

    alternatives: list[Alternative]
    why: Why


class Value(BaseModel):
    """A metadata value, and how many documents have it."""

    value: str
    count: int


class NewAction(Given):
    """Something to say of documents. `expected` has the last action on each of them, as the client knows it.

    For many documents at once, `seen` is the last action that the client knows of; 0 for none.
    """

    client: Annotated[str, Field(min_length=1, max_length=100, examples=["tab-1"])]
    kind: Literal["accept", "move", "none", "skip", "undo"]
    rows: Annotated[list[Row], Field(max_length=MOST_ROWS, examples=[[3]])] = []
    path: Path | None = None
    expected: Annotated[
        dict[Annotated[str, Field(max_length=20)], int | None] | None,
        Field(max_length=MOST_ROWS, examples=[{"3": None}]),
    ] = None
    seen: Annotated[int, Field(ge=0, lt=2**62)] | None = None


class Count(BaseModel):
    """How many documents are at or below a category now."""

    node: int
    count: int


class Done(BaseModel):
    """What an action did; it is on the disk. Rows in `left` have others' answers; `last` is the last action of all."""

    actions: list[int]
    done: int
    rows: list[int]
    tree: list[Count]
    left: list[int]
    last: int


class ConflictError(Error):
    """Somebody else was faster: their answer to the first of the documents, and all of them by row."""

    row: int | None = None
    answer: Answer | None = None
    answers: dict[str, Answer | None] = {}


class AcceptCategory(Given):
    """Accept all documents of a category that the model is sure of and nobody has answered.

    With the `model_version` of the preview, nothing is done where the model is another one by now.
    """

    client: Annotated[str, Field(min_length=1, max_length=100)] = "page"
    node: Annotated[int, Field(ge=0, lt=2**31)]
    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.9
    preview: bool = True
    model_version: Annotated[int, Field(ge=0, lt=2**31)] | None = None


class Accepted(BaseModel):
    """What would be accepted, or was."""

    count: int
    mean_confidence: float | None
    sample: list[Document]
    actions: list[int]
    model_version: int


class LoggedAction(BaseModel):
    """An action of the past."""

    id: int
    kind: str
    rows: list[int]
    path: list[str] | None
    by: str
    at: str
    undoes: int | None


class Imported(BaseModel):
    """Answers that were read; those of unknown documents, and those that others contradict, were left out."""

    read: int
    unknown: int
    conflicts: int
    actions: list[int]


class NewJob(Given):
    """Work to be done in the background."""

    kind: Literal["learn"]


class MoveCount(BaseModel):
    """How many documents went from one category to another."""

    model_config = ConfigDict(populate_by_name=True)
    from_: Annotated[list[str], Field(alias="from")]
    to: list[str]
    count: int


class Learned(BaseModel):
    """What a model that has learned places elsewhere, and its estimated accuracy before and after by level."""

    moved: int
    moves: list[MoveCount]
    accuracy: list[list[float]]
    answers: int
    said: str


class Job(BaseModel):
    """Work in the background."""

    id: int
    kind: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    stage: str
    progress: float
    result: Learned | None
    error: str | None
    at: str


class StartedJob(BaseModel):
    """A job that waits or runs."""

    job: Job


class Back(BaseModel):
    """The model in use now."""

    model_version: int
    can_go_back: bool


class NewDocuments(Given):
    """Documents to place: an object with a text and metadata fields each, as `himecat predict` reads them."""

    documents: Annotated[
        list[dict[str, Any]],
        Field(
            min_length=1,
            max_length=MOST_DOCUMENTS,
            examples=[[{"id": "a", "text": "The bin lorry did not come this week."}]],
        ),
    ]
    top: Annotated[int, Field(ge=0, le=20)] = 2


class Predictions(BaseModel):
    """One object for each document, with the columns of `himecat predict`."""

    model_version: int
    predictions: list[dict[str, Any]]


class ToExplain(Given):
    """A document, and the category to explain it by, if not the one it is placed at."""

    document: Annotated[dict[str, Any], Field(examples=[{"text": "The bin lorry did not come this week."}])]
    path: Path | None = None


class Explained(BaseModel):
    """Where a document is placed, and why."""

    path: list[str]
    confidence: list[float]
    none: float | None
    why: Why


class Labels(BaseModel):
    """The paths that documents can get."""

    labels: list[list[str]]
