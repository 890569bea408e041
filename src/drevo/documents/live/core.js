// The numbers of a live page: its functions, its state, motions. Needs no document: tests run it without a browser.
const bytesOf = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));

async function openCore(data) {
  const functions = {}, x = {};
  for (const [name, given] of Object.entries(data.functions)) {
    const m = await LOADERS[name](bytesOf(given.wasm), 1);
    const out = Object.fromEntries(given.outputs.map(([o, n], k) => [o, m.outputs[k].subarray(0, n)]));
    functions[name] = state => {
      given.inputs.forEach((i, k) => m.inputs[k].set(state[i]));
      m.run();
      return out;
    };
  }
  for (const [name, given] of Object.entries(data.inputs)) x[name] = Float64Array.from(given.value);
  const core = {data, functions, x};
  core.unit = state => {  // quaternions among the inputs, made unit
    for (const [name, places] of data.units) {
      const at = state[name], size = Math.hypot(...places.map(k => at[k]));
      if (size > 1e-9) places.forEach(k => { at[k] /= size; });
      else at[places[3]] = 1;
    }
  };
  core.move = (q, dv) => functions.integrate
    ? functions.integrate({q, dv}).q1.slice() : q.map((y, k) => y + dv[k]);
  core.swing = (q, seconds, h, keep, walls) => swing(core, q, seconds, h, keep, walls);
  core.text = (y, digits) => written(y, digits);
  return core;
}

// Weighted sums of rows: sum of w_k y_k.
const mixed = (...pairs) => pairs[0][1].map((_, i) => pairs.reduce((s, [w, y]) => s + w * y[i], 0));

// One step of the commutator-free method of fourth order of Celledoni, Marthinsen and Owren (2003); where q is no
// more than numbers it is the method of Runge and Kutta.
function step(core, q, v, h, efforts) {
  const rate = (at, speed) => core.functions.motion({q: at, v: speed, tau: efforts(at, speed)}).a.slice();
  const a1 = rate(q, v), q2 = core.move(q, mixed([h / 2, v])), v2 = mixed([1, v], [h / 2, a1]);
  const a2 = rate(q2, v2), q3 = core.move(q, mixed([h / 2, v2])), v3 = mixed([1, v], [h / 2, a2]);
  const a3 = rate(q3, v3), q4 = core.move(q2, mixed([h, v3], [-h / 2, v])), v4 = mixed([1, v], [h, a3]);
  const a4 = rate(q4, v4);
  const half = core.move(q, mixed([h / 4, v], [h / 6, v2], [h / 6, v3], [-h / 12, v4]));
  return [core.move(half, mixed([-h / 12, v], [h / 6, v2], [h / 6, v3], [h / 4, v4])),
          mixed([1, v], [h / 6, a1], [h / 3, a2], [h / 3, a3], [h / 6, a4]), a1];
}

// What limits push with: springs of 10 Hz with critical damping for the inertia that the joint has at first.
function walled(core, q0) {
  const nv = core.data.inputs.v.value.length, tau = new Float64Array(nv), w = 20 * Math.PI;
  const M = core.functions.state({q: q0, v: tau}).M.slice();
  return (q, v) => {
    for (const [i, k, low, high] of core.data.walls) {
      const past = q[i] > high ? q[i] - high : q[i] < low ? q[i] - low : 0;
      tau[k] = past && -M[k * nv + k] * w * (w * past + 2 * v[k]);
    }
    return tau;
  };
}

// The motion from rest without efforts: every keep-th step with its energies. Ends early where it leaves all bounds.
function swing(core, q0, seconds, h, keep, walls) {
  const n = Math.round(seconds / h), rows = [], nv = core.data.inputs.v.value.length;
  const still = new Float64Array(nv), efforts = walls ? walled(core, q0) : () => still;
  let q = Float64Array.from(q0), v = new Float64Array(nv);
  for (let k = 0; k <= n; k++) {
    const [q1, v1, a] = step(core, q, v, h, efforts);
    if (k % keep === 0) {
      const s = core.functions.state({q, v});
      rows.push({t: k * h, q, v, a, T: s.kinetic_energy[0], V: s.V[0]});
    }
    if (!(Math.max(...v1.map(Math.abs)) < 1e6)) break;
    [q, v] = [q1, v1];
  }
  return rows;
}

// A number as people write it, to so many digits; 17 are all there are, as few as tell it apart.
function written(y, digits) {
  if (!Number.isFinite(y)) return '—';
  return String(digits >= 17 ? y : Number(y.toPrecision(digits))).replaceAll('-', '−');
}
