// Answers. They go to the server one after another, and nothing is shown as saved before the server has it.

import { client, get, post } from "./api.js";
import { button, number, pathText, plural } from "./dom.js";
import { advance, current, find, select } from "./documents.js";
import { clearConflict, setConflict, shownDocument, whole } from "./document.js";
import { pickNode } from "./picker.js";
import { actionOf, emit, on, setChosen, state } from "./state.js";

let line = Promise.resolve();

// A key that is pressed while an answer is on its way means the document that comes next: it waits for its turn.
function enqueue(work) {
  line = line.then(work).catch((error) => emit("problem", error.message));
  return line;
}

export function createActions() {
  on("answer", (given) => (typeof given === "string" ? answer(given) : moveTo(given.move)));
}

export function answer(kind) {
  if (kind === "undo") return enqueue(undo);
  if (kind === "move") return ask();
  if (state.chosen.size) return enqueue(() => answerChosen(kind));
  return enqueue(() => answerOne(kind));
}

export function moveTo(path) {
  if (state.chosen.size) return enqueue(() => answerChosen("move", path));
  return enqueue(() => answerOne("move", path));
}

// Digit 1 to 5: the runner-up of that place.
export function takeSuggestion(place) {
  return enqueue(async () => {
    const one = await whole();
    const other = one?.alternatives?.[place - 1];
    if (other) await answerOne("move", other.path);
  });
}

async function ask() {
  await line;
  const one = state.chosen.size ? null : await whole();
  if (!state.chosen.size && !one) return;
  const node = await pickNode({
    title: state.chosen.size ? `Move ${plural(state.chosen.size, "document")} to` : `Move ${one.id} to`,
    suggestions: one?.alternatives ?? [],
  });
  if (node !== undefined) moveTo(state.taxonomy.path(node));
}

async function answerOne(kind, path, replacing) {
  const one = shownDocument();
  if (!one) return;
  const [, listed] = find(one.row);
  const last = replacing !== undefined ? replacing : actionOf((listed ?? one).answer);
  emit("saving");
  let result;
  // What is accepted is the place that was shown, whatever a new model says meanwhile.
  const place = kind === "accept" && one.path.length ? one.path : path;
  try {
    result = await post("/actions", { client, kind, rows: [one.row], ...(place ? { path: place } : {}), expected: { [one.row]: last } });
  } catch (error) {
    if (error.status !== 409) throw error;
    conflicted(one, kind, path, error);
    return;
  }
  clearConflict(one.row);
  settle([one.row], kind, path, result, one.path);
  const said = { accept: `Accepted ${one.id}`, move: `Moved ${one.id} to ${pathText(path)}`, none: `${one.id}: none of these`, skip: `Skipped ${one.id}` }[kind];
  emit("saved", { said, undo: true });
  if (current()?.row === one.row) advance();
}

function conflicted(one, kind, path, error) {
  const [, listed] = find(one.row);
  const other = error.body.answers?.[one.row] ?? null;
  if (listed) listed.answer = other;
  const mine = { accept: `“${pathText(one.path)}”`, none: "“none of these”", skip: "skipping" }[kind] ?? `“${pathText(path)}”`;
  setConflict(one.row, { said: error.message, answer: other, mine, again: () => enqueue(() => answerOne(kind, path, actionOf(other))) });
  emit("answered", [one.row]);
  emit("problem", error.message);
}

// What is in the list has to be as it is shown there; of the rest no answer was seen, so that none of others' is replaced.
async function answerChosen(kind, path, rows = [...state.chosen], seen = 0) {
  emit("saving");
  const known = seen ? [] : rows.map((row) => [row, find(row)[1]]).filter(([, one]) => one);
  const expected = Object.fromEntries(known.map(([row, one]) => [row, actionOf(one.answer)]));
  const result = await post("/actions", { client, kind, rows, ...(path ? { path } : {}), expected, seen });
  const left = new Set(result.left);
  const done = rows.filter((row) => !left.has(row));
  settle(done, kind, path, result);
  if (left.size) await refreshRows(result.left);
  setChosen([]);
  const what = { accept: "Accepted", move: "Moved", none: "None of these:", skip: "Skipped" }[kind];
  const said = `${what} ${plural(done.length, "document")}${path && done.length ? ` to ${pathText(path)}` : ""}`;
  if (!left.size) {
    emit("saved", { said, undo: true });
    return;
  }
  const again = () => enqueue(() => answerChosen(kind, path, result.left, result.last));
  emit("saved", {
    said: `${said}; ${left.size === 1 ? "1 has another answer, which was" : `${number(left.size)} have other answers, which were`} left alone`,
    undo: done.length > 0, stay: true,
    more: [button("Select", { class: "quiet", onclick: () => setChosen(result.left) }), button("Replace", { class: "quiet", onclick: again })],
  });
}

// What the server has stored, in the rows that are shown.
function settle(rows, kind, path, result, own) {
  const ids = result.actions ?? [];
  rows.forEach((row, place) => {
    const [, listed] = find(row);
    if (!listed) return;
    const action = ids.length === rows.length ? ids[place] : ids[0] ?? null;
    const to = { accept: own ?? listed.path, move: path }[kind] ?? null;
    listed.answer = { action, path: to, kind: { accept: "accepted", move: "moved", none: "none", skip: "skipped" }[kind], by: client };
  });
  emit("answered", rows);
  emit("counts");
}

async function undo() {
  emit("saving");
  let result;
  try {
    result = await post("/actions", { client, kind: "undo", rows: [] });
  } catch (error) {
    if (error.status !== 409 || error.body.answers) throw error;
    emit("saved", { said: error.message });
    return;
  }
  const rows = result.rows ?? [];
  await refreshRows(rows);
  emit("counts");
  const [place] = rows.length === 1 ? find(rows[0]) : [-1];
  if (place >= 0) select(place);
  emit("saved", { said: rows.length ? `Undone: ${plural(rows.length, "document")} as before` : "Undone" });
}

// What another tab or another person did: the rows that are shown follow.
export async function refreshRows(rows) {
  const shown = shownDocument();
  const here = rows.filter((row) => find(row)[1] || shown?.row === row).slice(0, 100);
  await Promise.all(here.map(async (row) => {
    const now = await get(`/documents/${row}`);
    const [, listed] = find(row);
    if (listed) listed.answer = now.answer;
  }));
  emit("answered", rows);
}

export function undoButton() {
  return button("Undo", { class: "quiet", onclick: () => answer("undo") }, "undo");
}

