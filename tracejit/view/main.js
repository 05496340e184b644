// Connects the parts: one selection, shown everywhere.

const page = JSON.parse($("data").textContent);
const MOST_ARGUMENTS = 6;  // in the heading; all are in the graph and in the section About
const selected = { ops: new Set(), at: null };
let model = null, timeline = null, memory = null;

function select(ops, at, from) {
  selected.ops = new Set(ops);
  selected.at = at;
  graph.selected = selected;
  if (at !== null && from !== "graph") graph.reveal(at); else graph.draw();
  const rows = new Map(ops.map((op) => [op, op === at ? "at" : "on"]));
  opList.mark(rows, from !== "list");
  sourceLines.mark(marks(sourceLines.rows), from !== "source");
  emittedLines.mark(marks(emittedLines.rows), from !== "emitted");
  const launch = at === null ? null : model.ops[at].launch;
  if (launch !== null) timeline?.show(launch);
  timeline?.draw();
  memory?.draw();
  detail();
  if (at !== null) $("said").textContent = `${ops.length > 1 ? `${ops.length} ops; ` : ""}${model.words(at, page.files)}`;
}

// Lines with a selected op; the line of the op in focus stands out.
function marks(rows) {
  const on = new Map();
  if (selected.ops.size) {
    rows.forEach((row, i) => {
      if (row.ops.includes(selected.at)) on.set(i, "at");
      else if (row.ops.some((op) => selected.ops.has(op))) on.set(i, "on");
    });
  }
  return on;
}

function detail() {
  const box = $("detail");
  const { at } = selected;
  const head = $("source-place"), emittedHead = $("emitted-place");
  if (at === null) {
    head.textContent = "";
    emittedHead.textContent = "";
    box.replaceChildren(make("p", { class: "quiet" }, model.ops.length
      ? "Choose an op, a line of your source, or a line of the emitted source: the other two follow."
      : "There are no ops to choose from."));
    return;
  }
  const op = model.ops[at];
  const launch = op.launch === null ? null : model.launches[op.launch];
  const place = op.place ? `${page.files[op.place[0]].name}:${op.place[1]}` : "";
  head.textContent = place ? model.placeText(at, page.files) : "no source line";
  const lines = model.linesOf[at];
  emittedHead.textContent = lines.length ? `line${lines.length > 1 ? "s" : ""} ${lines.slice(0, 4).map((line) => line + 1).join(", ")}${lines.length > 4 ? ", …" : ""}` : "no line of its own";
  const chips = (ops, most = 12) => make("span", { class: "chips" },
    ...ops.slice(0, most).map((each) => make("button", { type: "button", onclick: () => select([each], each, "detail") }, `${model.ops[each].name} ${model.ops[each].result}`)),
    ops.length > most ? make("span", { class: "quiet" }, `and ${ops.length - most} more`) : "");
  const facts = [];
  const add = (name, value) => { if (value) facts.push(make("dt", {}, name), make("dd", {}, value)); };
  if (selected.ops.size > 1) add("chosen", chips([...selected.ops]));
  if (op.detail) add("parameters", make("span", { class: "mono" }, op.detail));
  add("your line", place ? make("button", { type: "button", class: "link mono", onclick: () => focusLines(sourceLines, "source") }, place) : "");
  if (launch !== null) {
    const kernel = model.kernels[launch.kernel];
    add("kernel", make("span", { class: "mono" }, dot(launch.kernel), ` k${launch.kernel + 1} `,
      make("button", { type: "button", class: "link", onclick: () => focusLines(emittedLines, "emitted") }, kernel.name)));
    const measured = launch.ns === null ? "" : `, ${duration(launch.ns)} (at least ${duration(launch.least_ns)}: ${launch.bound})`;
    add("launch", `${op.launch + 1} of ${model.launches.length}${launch.parts > 1 ? `, in ${launch.parts} parts` : ""}${measured}`);
    add("threads", launch.threads);
    const others = model.opsOf[op.launch].filter((each) => each !== at);
    add("fused with", others.length ? chips(others) : "nothing");
    for (const [other, value, why] of launch.apart.slice(0, 6)) {
      const verb = other < op.launch ? "makes" : "reads";
      add("not fused with", make("span", {}, make("button", { type: "button", class: "link", onclick: () => chooseLaunch(other) }, `launch ${other + 1}`),
        `${value ? `, which ${verb} ${value}` : ""}: ${why}`));
    }
  } else if (op.kind === "op") {
    add("launch", "none: it needs no work at run time, or is part of the launches that read it");
  }
  add("uses", op.inputs.length ? chips([...new Set(op.inputs)]) : "");
  add("used by", model.users[at].length ? chips(model.users[at]) : "");
  if (op.output) add("result", op.output);
  box.replaceChildren(make("p", { class: "head" }, `${op.name}  `, make("span", { class: "quiet" }, op.result)), make("dl", {}, ...facts));
  box.scrollTop = 0;
}

function focusLines(lines, id) {
  $(id).scrollIntoView({ block: "nearest" });
  lines.box.focus();
}

// The panes

const graph = new GraphView($("graph-canvas"), page.files, {
  select: (ops, at) => select(ops, at, "graph"),
  unfolded: (all) => { $("collapse").checked = !all; },
});

const opList = new Lines($("op-list"), "Ops in order", (row, element, i) => {
  const op = model.ops[i];
  element.append(make("span", { class: "number" }, String(i + 1)), ticks(model, [i]), make("span", {}, op.name), make("span", { class: "result" }, `  ${op.result}  ${model.placeText(i, page.files)}`));
}, (row) => select(row.ops, row.ops[0], "list"), "This program has no ops.");

const sourceLines = new Lines($("source-lines"), "Your source; lines that ops come from can be chosen", (row, element) => {
  if (row.kind !== "line") {
    element.append(make("span", { class: row.kind }, row.text));
    return;
  }
  const code = make("span");
  coloured(row.text, code);
  element.append(make("span", { class: "number" }, String(row.number)), ticks(model, row.ops), code);
}, (row) => select(row.ops, row.ops[0], "source"), "There is no line of your source.");

const emittedLines = new Lines($("emitted-lines"), "Emitted source; lines that compute ops can be chosen", (row, element, i) => {
  const code = make("span");
  coloured(row.text, code);
  element.append(make("span", { class: "number" }, String(i + 1)), ticks(model, row.ops), code);
}, (row) => select(row.ops, row.ops[0], "emitted"), "There is no emitted source.");

function sourceRows() {
  const rows = [];
  page.files.forEach((file, number) => {
    if (!file.chunks.length && ![...model.byPlace.keys()].some((key) => key.startsWith(`${number}:`))) return;
    rows.push({ kind: "file", text: file.name, ops: [] });
    if (!file.chunks.length) rows.push({ kind: "gap", text: file.missing, ops: [] });
    let expected = 1;
    for (const [first, lines] of file.chunks) {
      if (first > expected) rows.push({ kind: "gap", text: `⋯ ${count(first - expected, "line")}`, ops: [] });
      lines.forEach((text, i) => rows.push({ kind: "line", text, file: number, number: first + i, ops: model.byPlace.get(`${number}:${first + i}`) ?? [] }));
      expected = first + lines.length;
    }
  });
  return rows;
}

const longest = (rows) => rows.reduce((most, row) => Math.max(most, row.text.length), 0);

function legend() {
  const rows = kernelRows(model).filter((row) => row.launches);
  $("legend").hidden = !rows.length;
  $("legend").replaceChildren(...rows.slice(0, 60).map((row) => make("button", {
    type: "button", "aria-pressed": "false", title: row.name, "data-kernel": row.i, onclick: () => pickKernel(row.i),
  }, dot(row.i), make("span", {}, `k${row.i + 1} ${row.name}`), make("b", {}, `×${row.launches}`))));
}

let picked = null;
function pickKernel(kernel) {
  picked = picked === kernel ? null : kernel;
  const ops = picked === null ? [] : model.ops.flatMap((_, i) => (model.kernelOf(i) === picked ? [i] : []));
  graph.found = picked === null ? null : new Set(ops);
  for (const button of $("legend").children) button.setAttribute("aria-pressed", String(Number(button.dataset.kernel) === picked));
  if (ops.length) select([ops[0]], ops[0], "legend"); else graph.draw();
}

// Search: Enter goes to the next match, Shift+Enter to the previous one.

let hits = [], hit = -1;
function search(by = 0) {
  const text = $("search").value.trim().toLowerCase();
  if (!by) {
    const linesAt = new Map(sourceLines.rows.filter((row) => row.kind === "line").map((row) => [`${row.file}:${row.number}`, row.text.toLowerCase()]));
    hits = !text ? [] : model.ops.flatMap((op, i) => {
      const line = op.place ? linesAt.get(op.place.join(":")) ?? "" : "";
      return `${model.words(i, page.files)} k${(model.kernelOf(i) ?? -1) + 1} ${op.detail}`.toLowerCase().includes(text) || line.includes(text) ? [i] : [];
    });
    hit = -1;
    graph.found = text ? new Set(hits) : null;
  }
  if (by && hits.length) hit = (hit + by + hits.length) % hits.length;
  $("found").textContent = !text ? "" : !hits.length ? "nothing" : hit < 0 ? `${hits.length} found` : `${hit + 1} of ${hits.length}`;
  if (hit >= 0) select([hits[hit]], hits[hit], "search"); else graph.draw();
}

function clear() {
  $("search").value = "";
  picked = null;
  for (const button of $("legend").children) button.setAttribute("aria-pressed", "false");
  search();
  select([], null, "clear");
}

function step(by) {
  const { at } = selected;
  const launch = at === null || model.ops[at].launch === null ? -1 : model.ops[at].launch;
  chooseLaunch(clamp(launch + by, 0, model.launches.length - 1));
}

function chooseLaunch(i) {
  const ops = model.opsOf[i];
  if (ops.length) select([...ops], ops[0], "time");
  else timeline?.show(i);
}

function sections() {
  const on = {
    select: (op) => select([op], op, "memory"), has: (op) => selected.ops.has(op), step, choose: chooseLaunch,
    kernel: (kernel) => { pickKernel(kernel); $("graph").scrollIntoView({ block: "nearest" }); },
    chosen: (i) => selected.at !== null && model.ops[selected.at].launch === i,
    place: ([file, number]) => {
      const row = sourceLines.rows.findIndex((each) => each.file === file && each.number === number);
      if (row >= 0) { sourceLines.mark(new Map([[row, "at"]]), true); focusLines(sourceLines, "source"); }
    },
  };
  timeline = timeSection(model, on);
  memory = memorySection(model, on);
  guardSection(model.guards, on);
  traceSection(page);
  aboutSection(page, model);
}

function show(number) {
  model = new Model(page.programs[number]);
  selected.ops = new Set();
  selected.at = null;
  [hits, hit, picked] = [[], -1, null];
  $("search").value = "";
  $("found").textContent = "";
  graph.found = null;
  const { signature } = model;
  const more = signature.length > MOST_ARGUMENTS ? [`and ${count(signature.length - MOST_ARGUMENTS, "more argument")}`] : [];
  $("subtitle").textContent = [[...signature.slice(0, MOST_ARGUMENTS), ...more].join(", "), `${count(model.count, "op")}, ${count(model.launches.length, "launch")} of ${count(model.kernels.length, "kernel")}`, model.kept].filter(Boolean).join("; ");
  $("collapse").checked = model.repeats.length > 0;
  $("collapse").disabled = !model.repeats.length;
  opList.show(model.ops.map((op, i) => ({ ops: [i], text: op.name + op.result })), 60);
  const rows = sourceRows();
  sourceLines.show(rows, longest(rows));
  const emitted = model.emitted.map((text, i) => ({ text, ops: model.byLine[i] }));
  emittedLines.show(emitted, longest(emitted));
  legend();
  graph.show(model, true);
  sections();
  detail();
}

function repaint() {
  theme.read();
  legend();
  graph.draw();
  for (const lines of [opList, sourceLines, emittedLines]) { lines.clear(); lines.draw(); }
  sections();
  detail();
}

function view(list) {
  $("as-list").setAttribute("aria-pressed", String(list));
  $("as-graph").setAttribute("aria-pressed", String(!list));
  $("op-list").hidden = !list;
  for (const id of ["graph-canvas", "graph-tools"]) $(id).hidden = list;
  $("legend").hidden = list || !model.launches.length;
  if (list) { opList.draw(); if (selected.at !== null) opList.reveal(selected.at); } else graph.resize();
}

document.documentElement.dataset.theme = "system";
theme.read();
for (const [i, program] of page.programs.entries()) $("program").append(make("option", { value: i }, program.title));
$("program-label").hidden = page.programs.length < 2;
$("notes").replaceChildren(...page.notes.map((text) => make("p", { class: "notice" }, text)));

$("program").addEventListener("change", (event) => show(Number(event.target.value)));
$("theme").addEventListener("change", (event) => { document.documentElement.dataset.theme = event.target.value; repaint(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
$("tools").addEventListener("submit", (event) => event.preventDefault());
$("search").addEventListener("input", () => search());
$("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter") { event.preventDefault(); search(event.shiftKey ? -1 : 1); }
});
$("collapse").addEventListener("change", (event) => {
  graph.open = new Set(event.target.checked ? [] : model.repeats.map((_, run) => run));
  graph.arrange();
  if (selected.at !== null) graph.reveal(selected.at); else graph.start();
});
$("zoom-in").addEventListener("click", () => graph.zoom(1.25));
$("zoom-out").addEventListener("click", () => graph.zoom(0.8));
$("zoom-fit").addEventListener("click", () => graph.fit());
$("as-graph").addEventListener("click", () => view(false));
$("as-list").addEventListener("click", () => view(true));
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "") && document.activeElement.type !== "checkbox";
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    $("search").focus();
    $("search").select();
  } else if (event.key === "Escape") {
    hideTip();
    const searching = document.activeElement === $("search");
    clear();
    if (searching) $("graph-canvas").focus();
  }
});

if (page.programs.length) show(0);
else {
  document.querySelector(".skip").hidden = true;
  for (const id of ["graph", "source", "emitted", "time", "memory", "guards"]) $(id).hidden = true;
  document.querySelector(".panes").hidden = true;
  traceSection(page);
  aboutSection(page, null);
  $("tools").querySelector(".search").hidden = true;
  for (const link of document.querySelectorAll("nav a")) link.hidden = document.querySelector(link.hash).hidden;
}

// For the console, and for tests.
window.tracejit = { page, selected, select, graph, opList, sourceLines, emittedLines, theme, colours, get model() { return model; }, get timeline() { return timeline; }, get memory() { return memory; } };
