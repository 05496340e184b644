// Long lists whose visible rows alone exist: ops, your source, emitted source.

const ROW = 20;  // pixels, as in the style sheet

class Lines {
  // rows: objects with `ops` (may be empty). paint(row, element, i) fills an element; choose(row) is a click or Enter.
  constructor(box, label, paint, choose, emptyText) {
    this.box = box;
    this.paint = paint;
    this.choose = choose;
    this.emptyText = emptyText;
    this.inner = make("div", { class: "rows", role: "presentation" });
    this.cursor = -1;
    this.on = new Map();  // row -> "on" or "at"
    this.elements = new Map();  // row -> its element; kept while it is visible, so that a click finds it
    box.append(this.inner);
    for (const [name, value] of [["tabindex", "0"], ["role", "listbox"], ["aria-label", label]]) box.setAttribute(name, value);
    box.addEventListener("scroll", () => this.draw());
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("focus", () => {
      if (this.cursor < 0 && box.matches(":focus-visible")) this.move(this.marked() ?? this.next(-1, 1), false);
    });
    this.inner.addEventListener("click", (event) => {
      const element = event.target.closest("[data-row]");
      if (element) this.take(Number(element.dataset.row));
    });
    new ResizeObserver(() => this.draw()).observe(box);
  }

  show(rows, width) {
    this.rows = rows;
    this.cursor = -1;
    this.on = new Map();
    this.inner.style.height = `${rows.length * ROW}px`;
    this.inner.style.minWidth = `max(100%, ${width + 10}ch)`;
    this.box.scrollTop = 0;
    this.clear();
    this.box.querySelector(".empty")?.remove();
    if (!rows.length) this.box.append(make("p", { class: "empty" }, this.emptyText));
    this.draw();
  }

  marked() { return [...this.on.keys()].sort((a, b) => a - b)[0]; }

  mark(on, reveal) {
    this.on = on;
    const at = [...on].find(([, kind]) => kind === "at")?.[0] ?? this.marked();
    if (at !== undefined) {
      this.cursor = at;
      if (reveal) this.reveal(at);
    }
    this.draw();
  }

  reveal(i) {
    const { scrollTop, clientHeight } = this.box;
    const y = i * ROW;
    if (y < scrollTop + ROW || y + ROW > scrollTop + clientHeight - ROW) {
      this.box.scrollTop = Math.max(0, y - clientHeight / 2 + ROW);
    }
  }

  next(from, by) {
    for (let i = from + by; i >= 0 && i < this.rows.length; i += by) if (this.rows[i].ops.length) return i;
    return undefined;
  }

  move(i, choose = true) {
    if (i === undefined) return;
    this.cursor = i;
    this.reveal(i);
    this.draw();
    if (choose) this.take(i);
  }

  take(i) {
    this.cursor = i;
    if (this.rows[i].ops.length) this.choose(this.rows[i]);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 2);
    const { length } = this.rows;
    const keys = {
      ArrowDown: () => this.move(this.next(this.cursor, 1)),
      ArrowUp: () => this.move(this.next(this.cursor < 0 ? length : this.cursor, -1)),
      PageDown: () => this.move(this.next(Math.min(length, this.cursor + page) - 1, 1) ?? this.next(length, -1)),
      PageUp: () => this.move(this.next(Math.max(-1, this.cursor - page) + 1, -1) ?? this.next(-1, 1)),
      Home: () => this.move(this.next(-1, 1)),
      End: () => this.move(this.next(length, -1)),
      Enter: () => { if (this.cursor >= 0) this.take(this.cursor); },
      " ": () => { if (this.cursor >= 0) this.take(this.cursor); },
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  clear() {
    this.elements.clear();
    this.inner.replaceChildren();
  }

  draw() {
    if (!this.rows || this.box.hidden) return;
    const { scrollTop, clientHeight } = this.box;
    const from = Math.max(0, Math.floor(scrollTop / ROW) - 6);
    const to = Math.min(this.rows.length, Math.ceil((scrollTop + clientHeight) / ROW) + 6);
    for (const [i, element] of this.elements) {
      if (i < from || i >= to) { element.remove(); this.elements.delete(i); }
    }
    for (let i = from; i < to; i++) {
      const has = this.rows[i].ops.length > 0;
      let element = this.elements.get(i);
      if (!element) {
        element = make("div", {
          role: has ? "option" : "presentation", "data-row": i, id: `${this.box.id}-${i}`,
          "aria-setsize": has ? this.rows.length : null, "aria-posinset": has ? i + 1 : null,
        });
        element.style.top = `${i * ROW}px`;
        this.paint(this.rows[i], element, i);
        this.elements.set(i, element);
        this.inner.append(element);
      }
      const kind = this.on.get(i);
      element.className = [has ? "has" : "", kind ? "on" : "", kind === "at" ? "at" : "", i === this.cursor ? "cursor" : ""].filter(Boolean).join(" ");
      if (has) element.setAttribute("aria-selected", String(Boolean(kind)));
    }
    if (this.cursor >= from && this.cursor < to) this.box.setAttribute("aria-activedescendant", `${this.box.id}-${this.cursor}`);
    else this.box.removeAttribute("aria-activedescendant");
  }
}

// Python in colours: words, strings, numbers, comments. A string over several lines has the colour on its first.

const TOKEN = /(#.*$)|("""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|\b(and|as|assert|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|True|False|None)\b|\b(\d[\w.]*)/g;

function coloured(text, element) {
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > end) element.append(text.slice(end, match.index));
    const kind = match[1] ? "c" : match[2] ? "s" : match[3] ? "k" : "n";
    element.append(make("span", { class: kind }, match[0]));
    end = match.index + match[0].length;
  }
  element.append(text.slice(end));
}

function ticks(model, ops) {
  const element = make("span", { class: "ticks", "aria-hidden": "true" });
  const kernels = [...new Set(ops.map((op) => model.kernelOf(op)))].slice(0, 3);
  for (const kernel of kernels) {
    const tick = make("i");
    tick.style.background = colours(kernel).edge;
    element.append(tick);
  }
  return element;
}
