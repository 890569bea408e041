// Inverse kinematics of a live page: a link goes to a pose by damped least squares, joint limits kept.

// World from link, row-major 3 x 4: the row of poses, then what is fixed.
function placed(poses, row, B) {
  if (row < 0) return B;
  const A = poses.subarray(16 * row, 16 * row + 12), out = new Float64Array(12);
  for (let i = 0; i < 3; i++)
    for (let j = 0; j < 4; j++)
      out[4 * i + j] = A[4 * i] * B[j] + A[4 * i + 1] * B[4 + j] + A[4 * i + 2] * B[8 + j] + (j === 3 ? A[4 * i + 3] : 0);
  return out;
}

// The pose of a link at q.
function poseAt(core, link, q) {
  const {row, offset} = core.data.figure.links[link];
  return placed(core.functions.state({...core.x, q}).poses, row, offset);
}

// From pose A to pose B: the translation in lengths of the unit, then the rotation vector, in axes of the world.
function twistBetween(A, B, unit, turns) {
  const d = [3, 7, 11].map(k => (B[k] - A[k]) / unit);
  if (!turns) return d;
  const R = (i, j) => [0, 1, 2].reduce((s, k) => s + B[4 * i + k] * A[4 * j + k], 0);  // B A^T
  const w = [R(2, 1) - R(1, 2), R(0, 2) - R(2, 0), R(1, 0) - R(0, 1)].map(y => y / 2), sine = Math.hypot(...w);
  const angle = Math.atan2(sine, (R(0, 0) + R(1, 1) + R(2, 2) - 1) / 2);
  return [...d, ...w.map(y => (sine > 1e-12 ? y * angle / sine : y))];
}

// x of A x = b, A symmetric and positive definite, by Gaussian elimination.
function solved(A, b) {
  const rows = A.map((row, i) => [...row, b[i]]), n = b.length;
  rows.forEach((row, i) => rows.slice(i + 1).forEach(next => {
    const factor = next[i] / row[i];
    for (let k = i; k <= n; k++) next[k] -= factor * row[k];
  }));
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) rows[i][n] -= rows[i][k] * rows[k][n];
    rows[i][n] /= rows[i][i];
  }
  return rows.map(row => row[n]);
}

// A step along the columns of a Jacobian that lessens e: (J J^T + mu) y = e, J^T y. What would pass a limit stops there.
function limitedStep(columns, e, mu, room) {
  const dv = columns.map(() => 0);
  let free = columns.map((_, k) => k).filter(k => columns[k]), rest = e;
  for (;;) {
    const A = e.map((_, i) => e.map((_, j) => free.reduce((s, k) => s + columns[k][i] * columns[k][j], i === j ? mu : 0)));
    const y = solved(A, rest);
    for (const k of free) dv[k] = columns[k].reduce((s, c, i) => s + c * y[i], 0);
    const stopped = free.filter(k => dv[k] < room[k][0] || dv[k] > room[k][1]);
    if (!stopped.length) return dv;
    for (const k of stopped) {
      dv[k] = Math.min(room[k][1], Math.max(room[k][0], dv[k]));
      rest = rest.map((y, i) => y - columns[k][i] * dv[k]);
    }
    free = free.filter(k => !stopped.includes(k));
    if (!free.length) return dv;
  }
}

// The method of Levenberg and Marquardt from q towards a pose of a link: what is nearest, {q, error in m and rad}.
// The Jacobian is of central differences of the poses. A free base stays, unless nothing else moves the link.
function reach(core, q, link, target, {turns = true, steps = 40} = {}) {
  const {data} = core, n = data.rates.length, unit = data.figure.size ?? 1, h = 1e-5;
  const off = at => twistBetween(poseAt(core, link, at), target, unit, turns);
  const size = e => e.reduce((s, y) => s + y * y, 0);
  let at = Float64Array.from(q), e = off(at), mu = 1e-4;
  for (let k = 0; k < steps && size(e) > 1e-24; k++) {
    const columns = Array.from({length: n}, (_, i) => {
      const dv = new Float64Array(n);
      dv[i] = h;
      const ahead = poseAt(core, link, core.move(at, dv));
      dv[i] = -h;
      const c = twistBetween(poseAt(core, link, core.move(at, dv)), ahead, unit, turns).map(y => y / (2 * h));
      return size(c) > 1e-16 ? c : null;
    });
    if (columns.some((c, i) => c && !data.floating.includes(i))) for (const i of data.floating) columns[i] = null;
    const room = columns.map(() => [-0.5, 0.5]);  // rad or m, of a step
    for (const [i, j, low, high] of data.walls)
      room[j] = [Math.max(-0.5, Math.min(0, low - at[i])), Math.min(0.5, Math.max(0, high - at[i]))];
    let better = false;
    for (; mu < 1e6 && !better; mu = better ? mu / 10 : 10 * mu) {
      const dv = limitedStep(columns, e, mu, room), next = core.move(at, dv), left = off(next);
      better = size(left) < size(e);
      if (!better) continue;
      k = size(e) - size(left) < 1e-9 * size(e) ? steps : k;
      [at, e] = [next, left];
    }
    if (!better) break;
  }
  return {q: at, error: [Math.hypot(...e.slice(0, 3)) * unit, Math.hypot(...e.slice(3))]};
}
