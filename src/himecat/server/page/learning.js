// Learning from the answers: a job with its progress, what came of it, and the way back.

import { get, post, remove } from "./api.js";
import { footer, openDialog } from "./dialog.js";
import { $, button, h, number, pathParts, percent, plural } from "./dom.js";
import { emit, on, state } from "./state.js";

let job = null;
let timer = 0;

export function createLearning() {
  $("learn").addEventListener("click", learn);
  on("learn", learn);
  on("job", follow);
  on("job-started", follow);
  get("/jobs").then((jobs) => {
    const running = jobs.find((one) => ["queued", "running"].includes(one.state));
    if (running) follow(running);
  }).catch(() => {});
}

const busy = () => job && ["queued", "running"].includes(job.state);

async function learn() {
  if (busy()) return;
  try {
    const answer = await post("/jobs", { kind: "learn" });
    follow(answer.job);
  } catch (error) {
    emit("problem", error.message);
  }
}

function follow(fresh) {
  if (job && job.id === fresh.id && ["done", "failed", "cancelled"].includes(job.state)) return;
  job = { ...(job?.id === fresh.id ? job : {}), ...fresh };
  clearTimeout(timer);
  // Should the line of events be down, the job is asked about.
  if (busy()) timer = setTimeout(() => get(`/jobs/${job.id}`).then(follow).catch(() => {}), 3000);
  draw();
  if (job.state === "done") finished();
  if (job.state === "failed") emit("problem", job.error ?? job.stage ?? "Learning failed; the model is as it was.");
  if (job.state === "cancelled") emit("saved", { said: "Learning was cancelled; the model is as it was." });
}

async function finished() {
  const whole = job.result ? job : await get(`/jobs/${job.id}`).catch(() => job);
  emit("model-changed");
  if (whole.result) showResult(whole.result);
}

let parts = null;

function draw() {
  const box = $("job");
  box.hidden = !busy();
  $("learn").disabled = busy();
  if (box.hidden) {
    parts = null;
    return;
  }
  if (!parts) {
    parts = { bar: h("progress", { max: "1", "aria-label": "Learning" }), stage: h("span", { role: "status" }), share: h("span", { class: "number" }) };
    parts.cancel = button("Cancel", { onclick: () => remove(`/jobs/${job.id}`).then(follow).catch((error) => emit("problem", error.message)) });
    box.replaceChildren(h("strong", {}, job.kind === "learn" ? "Learning" : "Changing the tree"), parts.stage, parts.bar, parts.share, parts.cancel);
  }
  parts.bar.value = job.progress ?? 0;
  const stage = job.stage || "waiting";
  if (parts.stage.textContent !== stage) parts.stage.textContent = stage;
  parts.share.textContent = percent(job.progress ?? 0);
}

function showResult(result) {
  openDialog({ title: job.kind === "learn" ? "What the model learned" : "What the new tree changed", className: "result", build: (handle) => {
    const accuracy = (result.accuracy ?? []).filter(Boolean).map(([before, after], level) => h("tr", {}, h("th", { scope: "row" }, `Level ${level + 1}`),
      h("td", { class: "number" }, percent(before, 1)), h("td", { class: "number" }, percent(after, 1)), h("td", { class: `number ${after >= before ? "up" : "down"}` }, signed(after - before))));
    const moves = (result.moves ?? []).slice(0, 200).map((one) => h("tr", {}, h("td", {}, pathParts(one.from)), h("td", {}, pathParts(one.to)), h("td", { class: "number" }, number(one.count))));
    return [
      h("p", { class: "lead" }, h("b", {}, plural(result.moved, "document")), result.moved === 1 ? " has another place now." : " have another place now."),
      accuracy.length ? h("table", {}, h("caption", {}, "Estimated accuracy"), h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Level"), ...["before", "after", "change"].map((text) => h("th", { scope: "col", class: "number" }, text)))), h("tbody", {}, ...accuracy)) : h("p", { class: "soft" }, "Too few labels for an estimate of accuracy."),
      moves.length ? h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Moves" }, h("table", {}, h("caption", {}, "Moves"), h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "from"), h("th", { scope: "col" }, "to"), h("th", { scope: "col", class: "number" }, "documents"))), h("tbody", {}, ...moves))) : "",
      footer(button("Go back to the model before", { onclick: () => { handle.close(); goBack(); } }, "undo"), h("span", { class: "grow" }), button("Keep the new model", { class: "primary", autofocus: true, onclick: () => handle.close() })),
    ];
  } });
}

const signed = (change) => `${change >= 0 ? "+" : "−"}${Math.abs(100 * change).toFixed(1)}`;

export async function goBack() {
  try {
    await post("/model/back", {});
    emit("saved", { said: "The model before is back." });
    emit("model-changed");
  } catch (error) {
    emit("problem", error.message);
  }
}

export const canGoBack = () => Boolean(state.model?.can_go_back);
