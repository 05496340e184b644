// Layout of a graph in layers: an op lies below everything that it uses. Folding of launches that repeat.

const BOX = { width: 148, height: 36, across: 18, down: 30, widest: 40 };

// Boxes to draw: one for each op, or for a folded run of repeats.
// `open` has the numbers of the runs that are unfolded.
function boxesOf(model, open) {
  const foldedBy = new Map();  // launch -> run
  model.repeats.forEach(([first, period, times], run) => {
    if (!open.has(run)) for (let i = first + period; i < first + period * times; i++) foldedBy.set(i, run);
  });
  // A box without a launch goes with the first op that uses it.
  const home = new Array(model.ops.length).fill(null);
  for (let i = model.ops.length - 1; i >= 0; i--) {
    const op = model.ops[i];
    home[i] = op.launch;
    if (home[i] !== null) continue;
    for (const user of model.users[i]) if (home[user] !== null && (home[i] === null || home[user] < home[i])) home[i] = home[user];
    // An argument or constant is folded if all its users are.
    if (op.kind !== "op" && model.users[i].some((user) => !foldedBy.has(home[user]))) home[i] = null;
  }
  const boxes = [];
  const boxOf = new Array(model.ops.length);
  const runBox = new Map();
  model.ops.forEach((op, i) => {
    const run = home[i] === null ? undefined : foldedBy.get(home[i]);
    if (run === undefined) {
      boxOf[i] = boxes.length;
      boxes.push({ op: i, ops: [i], run: null, inputs: [], users: [] });
    } else {
      if (!runBox.has(run)) {
        runBox.set(run, boxes.length);
        boxes.push({ op: null, ops: [], run, inputs: [], users: [] });
      }
      boxOf[i] = runBox.get(run);
      boxes[boxOf[i]].ops.push(i);
    }
  });
  const seen = new Set();
  model.ops.forEach((op, i) => {
    for (const input of op.inputs) {
      const [from, to] = [boxOf[input], boxOf[i]];
      const key = from * boxes.length + to;
      if (from === to || seen.has(key)) continue;
      seen.add(key);
      boxes[to].inputs.push(from);
      boxes[from].users.push(to);
    }
  });
  return { boxes, boxOf };
}

// Gives each box x and y. Edges between folded runs may form cycles; no box is waited for twice.
function place(boxes) {
  const depth = new Array(boxes.length).fill(0);
  const waiting = boxes.map((box) => box.inputs.length);
  const ready = [];
  boxes.forEach((box, i) => { if (!waiting[i]) ready.push(i); });
  const done = new Array(boxes.length).fill(false);
  let next = 0;
  for (let at = 0, taken = 0; taken < boxes.length; at++) {
    let i = ready[at];
    if (i === undefined) {  // a circle: go on with the first box that is left
      while (done[next]) next += 1;
      i = next;
      ready.push(i);
    }
    if (done[i]) continue;
    done[i] = true;
    taken += 1;
    for (const user of boxes[i].users) {
      if (done[user]) continue;
      depth[user] = Math.max(depth[user], depth[i] + 1);
      waiting[user] -= 1;
      if (waiting[user] === 0) ready.push(user);
    }
  }
  // Then each box moves down to just above its first user: the decay of an average stands beside its update, an
  // argument beside its op.
  for (let at = ready.length - 1; at >= 0; at--) {
    const i = ready[at];
    let first = Infinity;
    for (const user of boxes[i].users) first = Math.min(first, depth[user]);
    if (first < Infinity && first - 1 > depth[i]) depth[i] = first - 1;
  }
  const layers = [];
  boxes.forEach((box, i) => { (layers[depth[i]] ??= []).push(i); });
  const x = new Array(boxes.length).fill(0);
  const spread = (layer) => layer.forEach((i, at) => { x[i] = at - (layer.length - 1) / 2; });
  const filled = layers.filter(Boolean);
  filled.forEach(spread);
  // The preferred place of an op: among its neighbours, those in the next layer before those far away.
  const mean = (from, neighbours, otherwise) => {
    if (!neighbours.length) return otherwise;
    let sum = 0, weights = 0;
    for (const i of neighbours) {
      const weight = 1 / (depth[i] - depth[from] || 1) ** 2;
      sum += weight * x[i];
      weights += weight;
    }
    return sum / weights;
  };
  for (let sweep = 0; sweep < 6; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? filled : [...filled].reverse()) {
      const wish = new Map(layer.map((i) => [i, mean(i, down ? boxes[i].inputs : boxes[i].users, x[i])]));
      layer.sort((a, b) => wish.get(a) - wish.get(b) || a - b);
      // As near to the preferred place as neighbours allow.
      let free = -Infinity;
      for (const i of layer) { x[i] = Math.max(wish.get(i), free); free = x[i] + 1; }
      const shift = layer.reduce((sum, i) => sum + wish.get(i) - x[i], 0) / layer.length;
      for (const i of layer) x[i] += shift;
    }
  }
  let y = 0;
  const rows = [];
  for (const layer of filled) {
    for (let start = 0; start < layer.length; start += BOX.widest) {
      const row = layer.slice(start, start + BOX.widest);
      if (layer.length > BOX.widest) spread(row);
      row.forEach((i, at) => { boxes[i].x = x[i] * (BOX.width + BOX.across); boxes[i].y = y; boxes[i].row = rows.length; boxes[i].at = at; });
      rows.push({ y, boxes: row });
      y += BOX.height + BOX.down;
    }
  }
  let left = 0, right = BOX.width;
  for (const box of boxes) { left = Math.min(left, box.x); right = Math.max(right, box.x + BOX.width); }
  return { rows, left, right, height: Math.max(y - BOX.down, BOX.height) };
}
