// Answers as files, out and in.

import { address, client, send } from "./api.js";
import { footer, openDialog } from "./dialog.js";
import { button, h, plural } from "./dom.js";
import { emit } from "./state.js";

const FORMATS = { jsonl: "JSON lines", csv: "CSV", xlsx: "Excel", "label-studio": "Label Studio (taxonomy)" };

const choice = (id, label, options) => {
  const control = h("select", { id }, ...Object.entries(options).map(([value, text]) => h("option", { value }, text)));
  return [control, h("div", { class: "row" }, h("label", { for: id }, label), control)];
};

export function exportAnswers() {
  openDialog({ title: "Export answers", build: (handle) => {
    const [format, formatRow] = choice("export-format", "Format", FORMATS);
    const [what, whatRow] = choice("export-what", "Documents", { answers: "with an answer", all: "all, with their places" });
    const save = () => {
      const link = h("a", { href: address("/export", { format: format.value, what: what.value }), download: "" });
      document.body.append(link);
      link.click();
      link.remove();
      handle.close();
    };
    return [formatRow, whatRow, footer(h("span", { class: "grow" }), button("Export", { class: "primary", onclick: save }))];
  } });
}

function guess(name) {
  const end = name.toLowerCase().split(".").pop();
  return { csv: "csv", xlsx: "xlsx", json: "label-studio" }[end] ?? "jsonl";
}

export function importAnswers() {
  openDialog({ title: "Import answers", build: (handle) => {
    const file = h("input", { type: "file", id: "import-file", accept: ".jsonl,.csv,.xlsx,.json" });
    const [format, formatRow] = choice("import-format", "Format", FORMATS);
    const said = h("p", { role: "status" });
    const go = button("Import", { class: "primary", disabled: true });
    file.addEventListener("change", () => {
      go.disabled = !file.files.length;
      if (file.files.length) format.value = guess(file.files[0].name);
    });
    go.addEventListener("click", async () => {
      go.disabled = true;
      said.textContent = "Reading …";
      try {
        const result = await send("/import", { format: format.value, client }, file.files[0], "application/octet-stream");
        said.textContent = `${plural(result.read, "answer")} read, ${result.unknown ?? 0} for documents that are not here, ${result.conflicts ?? 0} in conflict with answers given here, which stay.`;
        emit("model-changed");
        go.replaceWith(button("Done", { class: "primary", onclick: () => handle.close() }));
      } catch (error) {
        said.textContent = error.message;
        go.disabled = false;
      }
    });
    return [h("div", { class: "row" }, h("label", { for: "import-file" }, "File"), file), formatRow, said, footer(h("span", { class: "grow" }), go)];
  } });
}
