// Renders /openapi.json; whatever is shown is text, never markup.

const page = document.getElementById("reference");

function add(parent, name, text = "") {
  const element = document.createElement(name);
  element.textContent = text;
  parent.append(element);
  return element;
}

function resolved(api, schema) {
  return schema?.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema;
}

function described(api, schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.anyOf) return schema.anyOf.map((one) => described(api, one)).join(" | ");
  if (schema.type === "array") return `[${described(api, schema.items)}]`;
  return schema.type ?? "any";
}

// An example of a value: what the description has, or the simplest that fits.
function example(api, schema, depth = 0) {
  const found = resolved(api, schema);
  if (!found || depth > 5) return null;
  if (found.examples?.length) return found.examples[0];
  if (found.default !== undefined) return found.default;
  if (found.const !== undefined) return found.const;
  if (found.enum) return found.enum[0];
  if (found.anyOf) return example(api, found.anyOf[0], depth + 1);
  if (found.type === "array") return [example(api, found.items, depth + 1)];
  if (found.type === "object") {
    const entries = Object.entries(found.properties ?? {});
    return Object.fromEntries(entries.map(([name, one]) => [name, example(api, one, depth + 1)]));
  }
  return { string: "", integer: 0, number: 0, boolean: false }[found.type] ?? null;
}

function table(parent, heads, rows) {
  if (!rows.length) return;
  const made = add(parent, "table");
  const head = add(add(made, "thead"), "tr");
  for (const one of heads) add(head, "th", one);
  const body = add(made, "tbody");
  for (const cells of rows) {
    const row = add(body, "tr");
    for (const cell of cells) add(row, "td", cell);
  }
}

function show(api, path, method, operation) {
  const section = add(page, "section");
  add(section, "h2", `${method.toUpperCase()} ${path}`);
  for (const part of (operation.description ?? "").split("\n\n")) add(section, "p", part);
  const parameters = (operation.parameters ?? []).map((one) => [
    one.name,
    one.in,
    described(api, one.schema),
    one.description ?? "",
  ]);
  table(section, ["parameter", "in", "type", "what it is"], parameters);
  const body = operation.requestBody?.content?.["application/json"]?.schema;
  if (body) {
    add(section, "p", resolved(api, body).description ?? "");
    add(section, "pre", JSON.stringify(example(api, body), null, 2));
  }
  const answers = Object.entries(operation.responses ?? {}).map(([status, one]) => {
    const [kind, found] = Object.entries(one.content ?? {})[0] ?? ["", {}];
    return [status, one.description ?? "", described(api, found.schema) || kind];
  });
  table(section, ["status", "when", "answer"], answers);
}

const api = await (await fetch("/openapi.json")).json();
add(page, "p", `${api.info.title} ${api.info.version}. ${api.info.description}`);
for (const [path, methods] of Object.entries(api.paths))
  for (const [method, operation] of Object.entries(methods)) show(api, path, method, operation);
