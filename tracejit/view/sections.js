// The sections below the panes: time, memory, guards, traces, and facts about the program.

function fill(id, ...children) {
  const section = $(id);
  section.replaceChildren(section.querySelector("h2"), ...children.filter((child) => child !== null));
}

// A table that is sorted by clicking the heading of a column. columns: [heading, cell(row) -> text or node, sort key or null, class].
function table(caption, columns, rows, most = 1000) {
  let by = null, descending = false;
  const body = make("tbody");
  const heads = columns.map(([heading, , sort, style], i) => make("th", { scope: "col", class: style ?? null },
    sort ? make("button", { type: "button", onclick: () => order(i) }, heading) : heading));
  const fillBody = () => {
    const sorted = by === null ? rows : [...rows].sort((a, b) => {
      const [x, y] = [columns[by][2](a), columns[by][2](b)];
      return (x < y ? -1 : x > y ? 1 : 0) * (descending ? -1 : 1);
    });
    body.replaceChildren(...sorted.slice(0, most).map((row) => make("tr", {},
      ...columns.map(([, cell, , style]) => make("td", { class: style ?? null }, cell(row))))));
    heads.forEach((head, i) => {
      if (i === by) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      const button = head.querySelector("button");
      if (button) button.textContent = columns[i][0] + (i === by ? (descending ? " ↓" : " ↑") : "");
    });
  };
  const order = (i) => {
    descending = by === i ? !descending : columns[i][3] === "right";
    by = i;
    fillBody();
  };
  fillBody();
  const more = rows.length > most ? ` (${(rows.length - most).toLocaleString("en")} more are left out)` : "";
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {}, make("caption", {}, caption + more), make("thead", {}, make("tr", {}, ...heads)), body));
}

function kernelRows(model) {
  const rows = model.kernels.map((kernel, i) => ({ ...kernel, i, launches: 0, ns: 0, least: 0, bytes: 0, flops: 0 }));
  for (const launch of model.launches) {
    const row = rows[launch.kernel];
    row.launches += 1;
    row.ns += launch.ns ?? 0;
    row.least += launch.least_ns ?? 0;
    row.bytes += launch.bytes ?? 0;
    row.flops += launch.flops ?? 0;
  }
  return rows;
}

function timeSection(model, on) {
  if (!model.launches.length) {
    fill("time", make("p", { class: "quiet" }, "This program launches nothing: its results are arguments, constants, or views of them."));
    return null;
  }
  const timed = model.is_timed;
  const rows = kernelRows(model);
  const total = rows.reduce((sum, row) => sum + row.ns, 0);
  const columns = [
    ["kernel", (row) => make("span", { class: "mono" }, dot(row.i), ` k${row.i + 1} `, make("button", { type: "button", class: "link", onclick: () => on.kernel(row.i) }, row.name)), (row) => row.i],
    ["launches", (row) => row.launches.toLocaleString("en"), (row) => row.launches, "right"],
  ];
  if (timed) {
    columns.push(
      ["time", (row) => duration(row.ns), (row) => row.ns, "right"],
      ["of all", (row) => `${(100 * row.ns / (total || 1)).toFixed(1)} %`, (row) => row.ns, "right"],
      ["at least", (row) => duration(row.least), (row) => row.least, "right"],
      ["of the roofline", (row) => (row.ns ? `${Math.round(100 * row.least / row.ns)} %` : ""), (row) => row.least / (row.ns || 1), "right"],
    );
  }
  columns.push(
    ["moved", (row) => bytes(row.bytes), (row) => row.bytes, "right"],
    ["arithmetic", (row) => amount(row.flops, "flop"), (row) => row.flops, "right"],
  );
  const kernels = table("Kernels", columns, rows);
  const words = make("p", {}, model.timing.join(" "));
  if (!timed) {
    fill("time", words, kernels);
    return null;
  }
  const box = make("div");
  fill("time", words, box, kernels);
  return timeChart(box, model, on);
}

function memorySection(model, on) {
  const { arena } = model;
  if (!arena.bytes || !arena.values.length) {
    fill("memory", make("p", { class: "quiet" }, arena.bytes ? `An arena of ${bytes(arena.bytes)}; ${arena.missing}.`
      : "No arena: every value is a result, or lives in registers of one kernel."));
    return null;
  }
  const sum = arena.values.reduce((all, value) => all + value.bytes, 0);
  const box = make("div");
  fill("memory",
    make("p", {}, `An arena of ${bytes(arena.bytes)} holds ${count(arena.values.length, "value")} of ${bytes(sum)} in total; each keeps its `
      + "place from the launch that writes it to the last launch that reads it."),
    box,
    make("details", {}, make("summary", {}, "As a table"), table("Values in the arena", [
      ["value", (value) => (value.op === null ? value.what : make("button", { type: "button", class: "link mono", onclick: () => on.select(value.op) }, value.what)), (value) => value.what],
      ["bytes", (value) => value.bytes.toLocaleString("en"), (value) => value.bytes, "right"],
      ["offset", (value) => value.offset.toLocaleString("en"), (value) => value.offset, "right"],
      ["written by launch", (value) => String(value.first + 1), (value) => value.first, "right"],
      ["last read by launch", (value) => String(value.last + 1), (value) => value.last, "right"],
    ], arena.values)));
  return memoryChart(box, model, on);
}

function guardSection(guards, on) {
  if (guards === null) {
    fill("guards", make("p", { class: "quiet" }, "Guards belong to a running function and are not in the cache; accfun.view() shows them."));
  } else if (!guards.length) {
    fill("guards", make("p", { class: "quiet" }, "None: besides its arguments this trace depends on nothing that could change."));
  } else {
    fill("guards",
      make("p", {}, `Compared at each call; where one does not hold, the trace is not replayed.`),
      make("ul", { class: "list" }, ...guards.map((guard) => make("li", {}, guard.text, " ",
        guard.place ? make("button", { type: "button", class: "link", onclick: () => on.place(guard.place) }, "show line") : ""))));
  }
}

function traceSection(page) {
  if (page.keys === null) {
    fill("traces", make("p", { class: "quiet" }, "Traces belong to a running function and are not in the cache; accfun.view() shows them."));
    return;
  }
  const parts = [];
  if (page.last) parts.push(make("p", {}, page.last));
  if (page.keys.length) {
    parts.push(table("Traces by key", [
      ["arguments", (key) => key.arguments, null, "mono"],
      ["calls", (key) => key.calls.toLocaleString("en"), (key) => key.calls, "right"],
      ["traces", (key) => String(key.traces), (key) => key.traces, "right"],
      ["confirmed", (key) => String(key.confirmations), (key) => key.confirmations, "right"],
      ["audits", (key) => String(key.audits), (key) => key.audits, "right"],
      ["replaced", (key) => String(key.replaced), (key) => key.replaced, "right"],
      ["state", (key) => key.state, null],
    ], page.keys));
  }
  parts.push(page.history.length
    ? table("History: calls that were not replayed, and why", [
      ["call", (event) => event.call.toLocaleString("en"), (event) => event.call, "right"],
      ["outcome", (event) => event.outcome, (event) => event.outcome],
      ["why", (event) => event.why, null],
    ], page.history)
    : make("p", { class: "quiet" }, "No call has been recorded since the cache was cleared."));
  fill("traces", ...parts);
}

const KEYS = [
  ["/", "search; Enter and Shift+Enter go to the next and the previous match"],
  ["Escape", "clears the selection"],
  ["arrows, Page Up, Page Down, Home, End", "in the graph: to what an op uses, what uses it, its neighbours, other launches, the first, the last; "
    + "in a source: to lines that have ops; in a chart: to other launches"],
  ["Enter", "in the graph: unfolds repeats"],
  ["+ − 0", "zoom in, zoom out, show all; Control and the wheel zoom too"],
];

// Facts about the selected program, if there is one, and about the page.
function aboutSection(page, model) {
  const list = (pairs, style = null) => make("dl", { class: "facts" }, ...pairs.flatMap(([name, value]) =>
    [make("dt", {}, name), make("dd", { class: style }, value)]));
  fill("about", list([...(model?.facts ?? []), ...page.facts], "mono"), model && make("h3", {}, "Keys"), model && list(KEYS));
}
