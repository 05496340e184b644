// The drawing of the graph: only the visible part is drawn, so 10,000 ops cost no more than a hundred.

const STRIP = 14;  // pixels of the strip at the right, which shows the whole graph
const FAR = 6;  // rows: longer edges are drawn whole for what is chosen only

class GraphView {
  constructor(canvas, files, on) {
    this.canvas = canvas;
    this.files = files;
    this.on = on;  // select(op), program changes, opened runs
    this.open = new Set();
    this.view = { x: 0, y: 0, scale: 1 };
    this.found = null;  // ops that a search or a kernel picked out, or null
    this.selected = { ops: new Set(), at: null };
    new ResizeObserver(() => this.resize()).observe(canvas);
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("dblclick", (event) => this.unfoldAt(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => hideTip());
  }

  show(model, fold) {
    this.model = model;
    this.open = new Set(fold ? [] : model.repeats.map((_, run) => run));
    this.arrange();
    this.start();
  }

  arrange() {
    const { boxes, boxOf } = boxesOf(this.model, this.open);
    this.boxes = boxes;
    this.boxOf = boxOf;
    this.placed = place(boxes);
    const { model } = this;
    this.canvas.setAttribute("aria-label", model.count
      ? `Graph of ${count(model.count, "op")} in ${count(model.launches.length, "launch")}` : "Graph without ops");
    this.draw();
  }

  // Starts at the beginning of the graph, at a readable size.
  start() {
    const { width } = this.size();
    const { left, right } = this.placed;
    const scale = clamp((width - 40) / (right - left), 0.55, 1);
    // A wide graph starts at the middle of its first layer.
    const first = this.placed.rows.slice(0, 12).flatMap((row) => row.boxes);
    const places = first.map((i) => this.boxes[i].x + BOX.width / 2).sort((a, b) => a - b);
    const focus = (right - left) * scale > width - 40 ? places[places.length >> 1] : (left + right) / 2;
    this.view = { scale, x: width / 2 - focus * scale, y: 20 };
    this.draw();
  }

  fit() {
    const { width, height } = this.size();
    const { left, right, height: tall } = this.placed;
    const scale = Math.min((width - 24 - STRIP) / (right - left), Math.max((height - 24) / tall, 0.08), 1.25);
    this.view = { scale, x: (width - STRIP) / 2 - ((left + right) / 2) * scale, y: Math.max(12, (height - tall * scale) / 2) };
    this.draw();
  }

  zoom(factor, x = this.size().width / 2, y = this.size().height / 2) {
    const scale = clamp(this.view.scale * factor, 0.002, 3);
    const by = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * by, y: y - (y - this.view.y) * by };
    this.draw();
  }

  size() {
    return { width: this.canvas.clientWidth || 600, height: this.canvas.clientHeight || 400 };
  }

  resize() {
    const { width, height } = this.size();
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.draw(true);
  }

  // Scrolls to an op, no further than needed, and enlarges it if it is too small to read.
  reveal(op) {
    const box = this.boxes[this.boxOf[op]];
    const { width, height } = this.size();
    if (this.view.scale < 0.5) this.view.scale = 0.9;
    const { scale } = this.view;
    const margin = 30;
    const left = box.x * scale + this.view.x, top = box.y * scale + this.view.y;
    const wide = BOX.width * scale, tall = BOX.height * scale;
    if (left < margin || left + wide > width - margin) this.view.x = width / 2 - (box.x + BOX.width / 2) * scale;
    if (top < margin || top + tall > height - margin) this.view.y = height / 2 - (box.y + BOX.height / 2) * scale;
    this.draw();
  }

  draw(now = false) {
    if (!now) {
      if (!this.waiting) { this.waiting = true; requestAnimationFrame(() => { this.waiting = false; this.draw(true); }); }
      return;
    }
    if (!this.placed) return;
    const context = this.canvas.getContext("2d");
    const ratio = devicePixelRatio || 1;
    const { width, height } = this.size();
    const { scale, x, y } = this.view;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.back;
    context.fillRect(0, 0, width, height);
    context.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * x, ratio * y);
    const top = -y / scale - BOX.height, bottom = (height - y) / scale;
    const left = -x / scale - BOX.width, right = (width - x) / scale;
    const { rows } = this.placed;
    const step = BOX.height + BOX.down;
    const from = clamp(Math.floor(top / step), 0, rows.length), to = clamp(Math.ceil(bottom / step) + 1, 0, rows.length);
    const visible = [];
    for (let row = from; row < to; row++) {
      for (const i of rows[row].boxes) {
        const box = this.boxes[i];
        if (box.y >= top && box.y <= bottom) visible.push(i);
      }
    }
    const drawn = visible.filter((i) => this.boxes[i].x >= left && this.boxes[i].x <= right);
    this.drawnCount = drawn.length;
    this.edges(context, visible, scale);
    for (const i of drawn) this.box(context, i, scale);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.strip(context, width, height);
  }

  // The whole graph in the colours of its kernels, with the visible part marked.
  strip(context, width, height) {
    const tall = this.placed.height;
    this.hasStrip = tall * this.view.scale > height - 12;
    if (!this.hasStrip) return;
    const x = width - STRIP, up = height / tall, { rows } = this.placed;
    context.fillStyle = theme.pane;
    context.fillRect(x, 0, STRIP, height);
    const high = Math.max(1, BOX.height * up);
    let drawnTo = -1;
    for (const row of rows) {
      const y = row.y * up;
      if (y < drawnTo) continue;
      drawnTo = Math.floor(y) + 1;
      const box = this.boxes[row.boxes[0]];
      context.fillStyle = colours(box.op === null ? null : this.model.kernelOf(box.op)).edge;
      context.fillRect(x + 4, y, STRIP - 6, high);
    }
    const top = clamp(-this.view.y / this.view.scale * up, 0, height);
    context.strokeStyle = theme.text;
    context.lineWidth = 2;
    context.strokeRect(x + 2, top + 1, STRIP - 3, Math.max(6, height / this.view.scale * up - 2));
  }

  // Shows the part of the graph that lies at a place of the strip.
  goTo(y) {
    const { height } = this.size();
    this.view.y = height / 2 - clamp(y / height, 0, 1) * this.placed.height * this.view.scale;
    this.draw();
  }

  edges(context, visible, scale) {
    const here = new Set(visible);
    const strong = [];
    context.strokeStyle = theme.edge;
    context.lineWidth = Math.max(1, 0.7 / scale);
    context.beginPath();
    for (const i of visible) {
      for (const input of this.boxes[i].inputs) {
        if (this.isOn(i) || this.isOn(input)) strong.push([input, i]);
        else if (this.isFar(input, i)) this.stub(context, input, i);
        else this.curve(context, input, i);
      }
      for (const user of this.boxes[i].users) {
        if (here.has(user)) continue;
        if (this.isOn(i) || this.isOn(user)) strong.push([i, user]);
        else if (!this.isFar(i, user)) this.curve(context, i, user);
      }
    }
    context.stroke();
    context.strokeStyle = theme.accent;
    context.lineWidth = Math.max(1.6, 1.2 / scale);
    context.beginPath();
    for (const [from, to] of strong) this.curve(context, from, to);
    context.stroke();
  }

  isOn(i) {
    const { ops, at } = this.selected;
    const box = this.boxes[i];
    return at !== null && (this.boxOf[at] === i || (ops.size <= 12 && box.op !== null && ops.has(box.op)));
  }

  isFar(from, to) { return Math.abs(this.boxes[to].row - this.boxes[from].row) > FAR; }

  stub(context, from, to) {
    const a = this.boxes[from], b = this.boxes[to];
    const x = b.x + BOX.width / 2, side = clamp((a.x - b.x) / 8, -BOX.width / 3, BOX.width / 3);
    context.moveTo(x, b.y);
    context.lineTo(x + (side || 12), b.y - BOX.down * 0.45);
  }

  curve(context, from, to) {
    const a = this.boxes[from], b = this.boxes[to];
    const x0 = a.x + BOX.width / 2, y0 = a.y + BOX.height, x1 = b.x + BOX.width / 2, y1 = b.y;
    const bend = clamp((y1 - y0) / 2, 12, 60);
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  }

  box(context, i, scale) {
    const box = this.boxes[i];
    const { model } = this;
    const op = box.op === null ? null : model.ops[box.op];
    const kernel = op === null ? null : model.kernelOf(box.op);
    const { fill, edge } = colours(kernel);
    const faint = this.found !== null && !box.ops.some((each) => this.found.has(each));
    const chosen = box.ops.some((each) => this.selected.ops.has(each));
    const at = this.selected.at !== null && this.boxOf[this.selected.at] === i;
    const radius = op !== null && op.kind !== "op" ? BOX.height / 2 : 6;
    context.beginPath();
    if (scale > 0.25) context.roundRect(box.x, box.y, BOX.width, BOX.height, radius);
    else context.rect(box.x, box.y, BOX.width, BOX.height);
    if (faint && !chosen) {
      context.fillStyle = theme.back;
      context.fill();
      context.globalAlpha = 0.35;
    }
    context.fillStyle = chosen ? (at ? theme.marked : theme.mark) : scale < 0.12 && kernel !== null ? edge : fill;
    context.fill();
    context.setLineDash(kernel === null ? [5, 3] : []);
    context.strokeStyle = at ? theme.accent : edge;
    context.lineWidth = at ? Math.max(2.5, 2 / scale) : 1.2;
    if (scale > 0.12 || at) context.stroke();
    context.setLineDash([]);
    if (scale > 0.3) {
      context.fillStyle = theme.text;
      context.textBaseline = "middle";
      const [first, second] = op === null ? this.foldedWords(box) : [op.name, op.result];
      const inner = BOX.width - 16;
      context.font = `600 12px ${theme.mono}`;
      context.textAlign = "left";
      const tag = kernel === null ? "" : `k${kernel + 1}`;
      context.font = `11px ${theme.mono}`;
      const tagWidth = tag ? context.measureText(tag).width + 8 : 0;
      if (tag) { context.textAlign = "right"; context.fillText(tag, box.x + BOX.width - 8, box.y + 11); context.textAlign = "left"; }
      context.font = `600 12px ${theme.mono}`;
      context.fillText(shortened(context, first, inner - tagWidth), box.x + 8, box.y + 11.5);
      context.font = `11px ${theme.mono}`;
      context.fillText(shortened(context, second, inner), box.x + 8, box.y + 25.5);
      if (op !== null && op.output) {
        context.fillStyle = theme.accent;
        context.font = `600 11px ${theme.mono}`;
        context.fillText(`↓ ${op.output}`, box.x + 8, box.y + BOX.height + 9);
      }
    }
    context.globalAlpha = 1;
  }

  foldedWords(box) {
    const [, period, times] = this.model.repeats[box.run];
    return [`× ${(times - 1).toLocaleString("en")} repeats`, `${count(box.ops.length, "op")}, ${count(period * (times - 1), "launch")}`];
  }

  hit(event) {
    const rect = this.canvas.getBoundingClientRect();
    const x = (event.clientX - rect.left - this.view.x) / this.view.scale;
    const y = (event.clientY - rect.top - this.view.y) / this.view.scale;
    const row = this.placed.rows[Math.floor(y / (BOX.height + BOX.down))];
    if (!row || y < row.y || y > row.y + BOX.height) return null;
    const found = row.boxes.find((i) => x >= this.boxes[i].x && x <= this.boxes[i].x + BOX.width);
    return found === undefined ? null : found;
  }

  choose(i) {
    const box = this.boxes[i];
    if (box.op !== null) this.on.select([box.op], box.op);
    else this.on.select(box.ops, box.ops[0]);
  }

  press(event) {
    if (event.button !== 0) return;
    const rect = this.canvas.getBoundingClientRect();
    const onStrip = this.hasStrip && event.clientX > rect.right - STRIP;
    const start = { x: event.clientX, y: event.clientY, view: { ...this.view }, moved: onStrip };
    if (onStrip) this.goTo(event.clientY - rect.top);
    const move = (each) => {
      if (onStrip) { this.goTo(each.clientY - rect.top); return; }
      const dx = each.clientX - start.x, dy = each.clientY - start.y;
      if (!start.moved && Math.hypot(dx, dy) < 4) return;
      start.moved = true;
      this.view.x = start.view.x + dx;
      this.view.y = start.view.y + dy;
      this.draw();
    };
    const end = (each) => {
      this.canvas.removeEventListener("pointermove", move);
      this.canvas.removeEventListener("pointerup", end);
      this.canvas.removeEventListener("pointercancel", end);
      if (start.moved || each.type === "pointercancel") return;
      const i = this.hit(each);
      if (i !== null) this.choose(i);
    };
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
  }

  hover(event) {
    const i = this.hit(event);
    this.canvas.style.cursor = i === null ? "grab" : "pointer";
    if (i === null || event.buttons) { hideTip(); return; }
    const box = this.boxes[i];
    showTip(event.clientX, event.clientY, box.op !== null ? this.model.words(box.op, this.files).replaceAll(", ", "\n")
      : `${this.foldedWords(box).join("\n")}\nDouble click to unfold.`);
  }

  wheel(event) {
    const rect = this.canvas.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * 0.004), event.clientX - rect.left, event.clientY - rect.top);
      return;
    }
    // At the end of the graph, the page scrolls.
    const { height } = this.size();
    const low = Math.min(20, height - 20 - this.placed.height * this.view.scale);
    const wanted = this.view.y - event.deltaY;
    const y = clamp(wanted, Math.min(low, this.view.y), Math.max(20, this.view.y));
    const dx = event.shiftKey ? event.deltaY : event.deltaX;
    if (y === this.view.y && !dx) return;
    event.preventDefault();
    if (!event.shiftKey) this.view.y = y;
    this.view.x -= dx;
    this.draw();
  }

  unfoldAt(event) {
    const i = this.hit(event);
    if (i !== null && this.boxes[i].run !== null) this.unfold(this.boxes[i].run);
  }

  unfold(run) {
    this.open.add(run);
    this.arrange();
    const first = this.model.opsOf[this.model.repeats[run][0]][0];
    if (first !== undefined) this.reveal(first);
    this.on.unfolded(this.open.size === this.model.repeats.length);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { model } = this;
    const at = this.selected.at;
    const go = (i) => { if (i !== undefined && i !== null) this.choose(i); };
    const here = at === null ? null : this.boxes[this.boxOf[at]];
    const last = this.boxes.length - 1;
    const keys = {
      ArrowUp: () => (here ? go(here.inputs[0]) : go(0)),
      ArrowDown: () => (here ? go(here.users[0]) : go(0)),
      ArrowLeft: () => (here ? go(this.placed.rows[here.row].boxes[here.at - 1]) : go(0)),
      ArrowRight: () => (here ? go(this.placed.rows[here.row].boxes[here.at + 1]) : go(0)),
      Home: () => go(0),
      End: () => go(last),
      PageDown: () => this.launch(at, 1),
      PageUp: () => this.launch(at, -1),
      Enter: () => { if (here && here.run !== null) this.unfold(here.run); else if (!here) go(0); },
      "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8), 0: () => this.fit(),
    };
    const found = keys[event.key];
    if (!found || !model.ops.length) return;
    event.preventDefault();
    found();
  }

  launch(at, by) {
    const { model } = this;
    let launch = at === null || model.ops[at].launch === null ? (by > 0 ? -1 : model.launches.length) : model.ops[at].launch;
    do launch += by; while (launch >= 0 && launch < model.launches.length && !model.opsOf[launch].length);
    const ops = model.opsOf[launch];
    if (ops) this.on.select([...ops], ops[0]);
  }
}

function shortened(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const each = context.measureText("0").width;
  return `${text.slice(0, Math.max(1, Math.floor(width / each) - 1))}…`;
}

function showTip(x, y, text) {
  const tip = $("tip");
  tip.textContent = text;
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${clamp(x + 14, 4, innerWidth - width - 4)}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? y - height - 10 : y + 18}px`;
}

function hideTip() { $("tip").hidden = true; }
