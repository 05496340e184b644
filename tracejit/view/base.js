// Shared by all parts of the page: elements, numbers in words, colours, and the model of one program.

const $ = (id) => document.getElementById(id);

// Text goes into the page as text nodes only, never as markup.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function count(number, what) {
  const plural = /(s|x|ch)$/.test(what) ? `${what}es` : what.endsWith("y") ? `${what.slice(0, -1)}ies` : `${what}s`;
  return `${number.toLocaleString("en")} ${number === 1 ? what : plural}`;
}

function bytes(number) {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let at = 0;
  while (number >= 1024 && at < 3) { number /= 1024; at += 1; }
  return at ? `${number.toFixed(1)} ${units[at]}` : `${number} bytes`;
}

function duration(ns) {
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toFixed(ns < 1e4 ? 2 : 1)} µs`;
  return ns < 1e9 ? `${(ns / 1e6).toFixed(ns < 1e7 ? 2 : 1)} ms` : `${(ns / 1e9).toFixed(2)} s`;
}

function amount(number, unit) {
  const scale = number >= 1e9 ? [1e9, "G"] : number >= 1e6 ? [1e6, "M"] : number >= 1e3 ? [1e3, "k"] : [1, ""];
  return `${(number / scale[0]).toFixed(scale[0] > 1 ? 1 : 0)} ${scale[1]}${unit}`;
}

const shortFile = (name) => name.replace(/^.*[\\/]/, "");
const clamp = (x, low, high) => Math.max(low, Math.min(high, x));

// Colours. A kernel's hue follows from its number; its name is always beside the colour.

const theme = {
  dark: false,
  read() {
    this.dark = getComputedStyle(document.documentElement).colorScheme === "dark"
      || (document.documentElement.dataset.theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
    const probe = make("i");
    document.body.append(probe);
    for (const name of ["back", "pane", "line", "edge", "text", "quiet", "accent", "mark", "marked"]) {
      probe.style.color = `var(--${name})`;
      this[name] = getComputedStyle(probe).color;
    }
    probe.remove();
    const style = getComputedStyle($("emitted-lines"));
    this.mono = getComputedStyle(document.documentElement).getPropertyValue("--mono") || style.fontFamily;
  },
};

function colours(kernel) {
  if (kernel === null || kernel < 0) return { fill: theme.pane, edge: theme.quiet };
  const hue = (250 + kernel * 137.508) % 360;
  return theme.dark
    ? { fill: `oklch(0.36 0.075 ${hue})`, edge: `oklch(0.74 0.12 ${hue})` }
    : { fill: `oklch(0.91 0.06 ${hue})`, edge: `oklch(0.58 0.14 ${hue})` };
}

function dot(kernel) {
  const { fill, edge } = colours(kernel);
  const element = make("i", { class: "dot", "aria-hidden": "true" });
  element.style.background = fill;
  element.style.borderColor = edge;
  return element;
}

// The model of one program: its data, with links between ops, launches and lines.

class Model {
  constructor(program) {
    Object.assign(this, program);
    this.users = this.ops.map(() => []);
    this.byPlace = new Map();
    this.byLine = this.emitted.map(() => []);
    this.linesOf = this.ops.map(() => []);
    this.ops.forEach((op, i) => {
      for (const input of op.inputs) if (this.users[input].at(-1) !== i) this.users[input].push(i);
      if (op.place) {
        const key = `${op.place[0]}:${op.place[1]}`;
        if (!this.byPlace.has(key)) this.byPlace.set(key, []);
        this.byPlace.get(key).push(i);
      }
    });
    for (const [line, ...ops] of this.links) {
      this.byLine[line].push(...ops);
      for (const op of ops) this.linesOf[op].push(line);
    }
    this.opsOf = this.launches.map(() => []);
    this.ops.forEach((op, i) => { if (op.launch !== null) this.opsOf[op.launch].push(i); });
    this.count = this.ops.filter((op) => op.kind === "op").length;
    this.launchesOf = this.kernels.map(() => 0);
    for (const launch of this.launches) this.launchesOf[launch.kernel] += 1;
  }

  kernelOf(op) {
    const launch = this.ops[op].launch;
    return launch === null ? null : this.launches[launch].kernel;
  }

  placeText(op, files) {
    const place = this.ops[op].place;
    return place ? `${shortFile(files[place[0]].name)}:${place[1]}` : "";
  }

  words(op, files) {
    const { name, result, launch, kind } = this.ops[op];
    const where = this.placeText(op, files);
    const runs = launch === null ? (kind === "op" ? "no launch of its own" : kind)
      : `launch ${launch + 1}, kernel ${this.kernels[this.launches[launch].kernel].name}`;
    return `${name}, ${result}, ${runs}${where ? `, ${where}` : ""}`;
  }
}
