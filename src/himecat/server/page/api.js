// Everything that is asked of the server, and what it says by itself.

export class ApiError extends Error {
  constructor(status, message, body) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

// One tab is one client: it undoes its own actions, also after it was loaded again.
export const client = sessionStorage.getItem("himecat-client") ?? newClient();

function newClient() {
  const id = Array.from(crypto.getRandomValues(new Uint8Array(8)), (one) => one.toString(16).padStart(2, "0")).join("");
  sessionStorage.setItem("himecat-client", id);
  return id;
}

const BASE = "/api/v1";

export function address(path, query = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") search.append(name, one);
    }
  }
  const text = search.toString();
  return `${BASE}${path}${text ? `?${text}` : ""}`;
}

async function ask(method, url, { body, raw, type, signal } = {}) {
  const options = { method, signal, credentials: "same-origin" };
  if (body !== undefined) {
    options.body = raw ? body : JSON.stringify(body);
    options.headers = { "Content-Type": type ?? "application/json" };
  }
  let answer;
  try {
    answer = await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not answer: is `himecat serve` still running?");
  }
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    throw new ApiError(answer.status, said.error ?? `The server answered ${answer.status}.`, said);
  }
  return answer;
}

export async function get(path, query, signal) {
  return (await ask("GET", address(path, query), { signal })).json();
}

export async function getBytes(path, signal) {
  return (await ask("GET", address(path), { signal })).arrayBuffer();
}

export async function post(path, body, query) {
  return (await ask("POST", address(path, query), { body })).json();
}

export async function send(path, query, file, type) {
  return (await ask("POST", address(path, query), { body: file, raw: true, type })).json();
}

export async function remove(path) {
  return (await ask("DELETE", address(path))).json();
}

// Calls `heard(kind, data)` for what the server says, and `opened()` when the line is up: what came before was not heard.
export function listen(heard, opened) {
  const source = new EventSource(address("/events"));
  for (const kind of ["action", "job", "model", "tree"]) {
    source.addEventListener(kind, (event) => heard(kind, JSON.parse(event.data)));
  }
  source.addEventListener("open", opened);
  const close = () => source.close();
  window.addEventListener("pagehide", close);
  // A line that broke is tried again by the browser, one that was refused is not.
  source.addEventListener("error", () => {
    if (source.readyState !== EventSource.CLOSED) return;
    window.removeEventListener("pagehide", close);
    setTimeout(listen, 2000, heard, opened);
  });
}
