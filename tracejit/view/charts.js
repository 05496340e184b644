// The time line of the launches and the picture of the arena: canvases along the launches of a program.

class Chart {
  // draw(context, width, height, from, to): draws that part of the x axis. at(x, y, ...): the item at a point.
  constructor(parent, { height, label, draw, hit, keys, extent }) {
    this.canvas = make("canvas", { tabindex: "0", role: "application", "aria-roledescription": "chart", "aria-label": label });
    this.canvas.style.height = `${height}px`;
    this.height = height;
    this.paint = draw;
    this.hit = hit;
    this.extent = extent;
    [this.from, this.to] = [0, extent];
    const zoom = (name, by, text) => make("button", { type: "button", "aria-label": name, onclick: () => this.zoom(by) }, text);
    parent.append(
      make("div", { class: "chart" }, this.canvas),
      make("div", { class: "under" }, zoom("Zoom out along the launches", 2, "−"), zoom("Zoom in along the launches", 0.5, "+"),
        make("button", { type: "button", onclick: () => this.all() }, "All"),
        this.words = make("span", { class: "quiet", "aria-live": "polite" })),
    );
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * 0.004), this.value(event));
    }, { passive: false });
    this.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const found = { ...keys, "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.all() }[event.key];
      if (!found) return;
      event.preventDefault();
      found();
    });
  }

  value(event) {
    const rect = this.canvas.getBoundingClientRect();
    return this.from + (event.clientX - rect.left) / rect.width * (this.to - this.from);
  }

  zoom(factor, around = (this.from + this.to) / 2) {
    const span = Math.min(this.extent, (this.to - this.from) * factor);
    const share = (around - this.from) / (this.to - this.from);
    this.from = clamp(around - share * span, 0, this.extent - span);
    this.to = this.from + span;
    this.draw();
  }

  all() { [this.from, this.to] = [0, this.extent]; this.draw(); }

  reveal(start, end) {
    const span = this.to - this.from;
    if (start >= this.from && end <= this.to) return;
    this.from = clamp((start + end - span) / 2, 0, Math.max(0, this.extent - span));
    this.to = this.from + span;
  }

  press(event) {
    if (event.button !== 0) return;
    const rect = this.canvas.getBoundingClientRect();
    const start = { x: event.clientX, from: this.from, moved: false };
    const span = this.to - this.from;
    const move = (each) => {
      const dx = each.clientX - start.x;
      if (!start.moved && Math.abs(dx) < 4) return;
      start.moved = true;
      this.from = clamp(start.from - dx / rect.width * span, 0, this.extent - span);
      this.to = this.from + span;
      this.draw();
    };
    const end = (each) => {
      for (const name of ["pointermove", "pointerup", "pointercancel"]) this.canvas.removeEventListener(name, name === "pointermove" ? move : end);
      if (!start.moved && each.type === "pointerup") this.hit(this.value(each), each.clientY - rect.top, this.height, true);
    };
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
  }

  hover(event) {
    const rect = this.canvas.getBoundingClientRect();
    const text = this.hit(this.value(event), event.clientY - rect.top, this.height, false);
    if (text) showTip(event.clientX, event.clientY, text); else hideTip();
    this.canvas.style.cursor = text ? "pointer" : "default";
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const width = this.canvas.clientWidth;
      if (!width) return;
      const ratio = devicePixelRatio || 1;
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
      const context = this.canvas.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.fillStyle = theme.back;
      context.fillRect(0, 0, width, this.height);
      context.font = "12px system-ui, sans-serif";
      context.textBaseline = "middle";
      this.paint(context, width, this.height, this.from, this.to);
    });
  }
}

// Marks on an axis at 1, 2 or 5 times a power of ten.
function axis(from, to, most) {
  const rough = (to - from) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((by) => by * power).find((each) => each >= rough);
  const marks = [];
  for (let at = Math.ceil(from / step) * step; at <= to * (1 + 1e-9); at += step) marks.push(at);
  return marks;
}

function labels(context, width, y, from, to, words) {
  context.fillStyle = theme.quiet;
  context.textAlign = "center";
  for (const at of axis(from, to, Math.max(2, width / 110))) {
    const x = (at - from) / (to - from) * width;
    const half = context.measureText(words(at)).width / 2 + 3;
    context.fillRect(x, y - 12, 1, 4);
    context.fillText(words(at), clamp(x, half, width - half), y);
  }
}

function launchWords(model, i) {
  const launch = model.launches[i];
  const kernel = model.kernels[launch.kernel];
  const lines = [`launch ${i + 1}: ${kernel.name}`, launch.note.length > 90 ? `${launch.note.slice(0, 88)}…` : launch.note];
  if (launch.ns !== null) {
    lines.push(`measured ${duration(launch.ns)}; the machine needs ${duration(launch.least_ns)} at least (${launch.bound})`);
  }
  if (launch.bytes !== null) lines.push(`${bytes(launch.bytes)} moved, ${amount(launch.flops, "flop")}`);
  if (launch.parts > 1) lines.push(`${launch.parts} parts, which may run at the same time`);
  if (launch.threads) lines.push(launch.threads);
  return lines.join("\n");
}

function share(launch) {
  return launch.ns > 0 ? Math.min(1, launch.least_ns / launch.ns) : 0;
}

function timeChart(parent, model, on) {
  const starts = [];
  let total = 0;
  for (const launch of model.launches) { starts.push(total); total += launch.ns; }
  const find = (at) => {
    let low = 0, high = starts.length - 1;
    while (low < high) { const middle = (low + high + 1) >> 1; if (starts[middle] <= at) low = middle; else high = middle - 1; }
    return low;
  };
  const chart = new Chart(parent, {
    height: 118, extent: total, label: "Time line of the launches; left and right go from launch to launch",
    draw(context, width, height, from, to) {
      const scale = width / (to - from), top = 8, tall = height - 38;
      const last = find(to);
      for (let i = find(from); i <= last; i++) {
        const launch = model.launches[i];
        const { fill, edge } = colours(launch.kernel);
        const x = (starts[i] - from) * scale, wide = Math.max(launch.ns * scale, 0.4);
        const gap = wide > 4 ? 1 : 0;
        context.fillStyle = fill;
        context.fillRect(x, top, wide - gap, tall);
        const used = tall * share(launch);
        context.fillStyle = edge;
        context.fillRect(x, top + tall - used, wide - gap, used);
        if (wide > 46) {
          context.fillStyle = theme.text;
          context.textAlign = "left";
          context.save();
          context.beginPath();
          context.rect(x, top, wide - 3, tall);
          context.clip();
          const words = `k${launch.kernel + 1} ${duration(launch.ns)}`;
          context.fillStyle = fill;
          context.fillRect(x, top, Math.min(wide - gap, context.measureText(words).width + 9), 18);
          context.fillStyle = theme.text;
          context.fillText(words, x + 5, top + 10);
          context.restore();
        }
        if (on.chosen(i)) {
          context.strokeStyle = theme.accent;
          context.lineWidth = 3;
          context.strokeRect(x + 1, top + 1, Math.max(wide - gap - 2, 1), tall - 2);
          context.fillStyle = theme.accent;  // a launch may be thinner than its frame
          context.beginPath();
          context.moveTo(x + wide / 2 - 6, 0);
          context.lineTo(x + wide / 2 + 6, 0);
          context.lineTo(x + wide / 2, top);
          context.fill();
        }
      }
      labels(context, width, height - 12, from, to, duration);
    },
    hit(at, y, height, click) {
      const i = find(at);
      if (click) on.choose(i);
      return launchWords(model, i);
    },
    keys: {
      ArrowRight: () => on.step(1), ArrowLeft: () => on.step(-1),
      Home: () => on.choose(0), End: () => on.choose(model.launches.length - 1),
    },
  });
  chart.show = (i) => { chart.reveal(starts[i], starts[i] + model.launches[i].ns); chart.words.textContent = launchWords(model, i).replaceAll("\n", ". "); };
  return chart;
}

function memoryChart(parent, model, on) {
  const { values, bytes: size } = model.arena;
  const name = (value) => `${value.what}: ${bytes(value.bytes)} at byte ${value.offset.toLocaleString("en")}, from launch ${value.first + 1} to ${value.last + 1}`;
  const kernelOf = (value) => (value.op === null ? null : model.kernelOf(value.op));
  return new Chart(parent, {
    height: 240, extent: model.launches.length,
    label: "Memory plan: launches from left to right, bytes of the arena from bottom to top; left and right go from launch to launch",
    draw(context, width, height, from, to) {
      const tall = height - 30, across = width / (to - from), up = tall / size;
      for (const value of values) {
        if (value.last + 1 < from || value.first > to) continue;
        const x = (value.first - from) * across, wide = (value.last + 1 - value.first) * across;
        const y = tall - (value.offset + value.bytes) * up, high = Math.max(value.bytes * up, 0.5);
        const { fill, edge } = colours(kernelOf(value));
        const chosen = value.op !== null && on.has(value.op);
        context.fillStyle = chosen ? theme.marked : fill;
        context.fillRect(x, y, Math.max(wide, 0.5), high);
        if (wide > 5 && high > 4) {
          context.strokeStyle = chosen ? theme.accent : edge;
          context.lineWidth = chosen ? 2.5 : 1;
          context.strokeRect(x + 0.5, y + 0.5, wide - 1, high - 1);
        }
        const seen = Math.max(x, 0), room = Math.min(x + wide, width) - seen - 10;
        if (room > 40 && high > 13) {
          context.fillStyle = theme.text;
          context.textAlign = "left";
          context.fillText(shortened(context, `${value.what} ${bytes(value.bytes)}`, room), seen + 5, y + high / 2);
        }
      }
      labels(context, width, height - 12, from, to, (at) => (Number.isInteger(at) && at < model.launches.length ? `launch ${at + 1}` : ""));
    },
    hit(at, y, height, click) {
      const offset = (height - 30 - y) / (height - 30) * size;
      const value = values.find((each) => at >= each.first && at < each.last + 1 && offset >= each.offset && offset < each.offset + each.bytes);
      if (!value) return "";
      if (click && value.op !== null) on.select(value.op);
      return name(value).replace(", from", "\nfrom");
    },
    keys: { ArrowRight: () => on.step(1), ArrowLeft: () => on.step(-1) },
  });
}
