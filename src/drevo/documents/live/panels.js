// What a live page shows of a robot beside its formulas: a pose, M, gravity, energies, a motion over time.
const COLOURS = ['#0b7a75', '#b3452c', '#c98a1b', '#3b6fb6', '#7a4fa3', '#4d8b31', '#a83e6f', '#6b6f76'];

// A canvas in the pixels of the screen: context, width, height.
function sheet(canvas) {
  const w = canvas.clientWidth, h = canvas.clientHeight, k = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(w * k) || canvas.height !== Math.round(h * k)) {
    canvas.width = Math.round(w * k);
    canvas.height = Math.round(h * k);
  }
  const c = canvas.getContext('2d');
  c.setTransform(k, 0, 0, k, 0, 0);
  c.clearRect(0, 0, w, h);
  c.font = '12px system-ui, sans-serif';
  return [c, w, h];
}

const ink = name => getComputedStyle(document.body).getPropertyValue(name).trim();

function openPanels(page) {
  const {core} = page, {data, x} = core, n = data.inputs.v?.value.length ?? 0, f = data.figure;
  const link = byId('link'), matrix = byId('matrix'), canvas = byId('heat'), tip = byId('entry');
  const bars = [...document.querySelectorAll('#gravity [data-bar]')];
  let M = null;
  const pose = s => {
    const {row, offset} = f.links[link.value], T = placed(s.poses, row, offset);
    byId('pose').innerHTML = [0, 1, 2].map(i =>
      `<tr>${[0, 1, 2, 3].map(j => `<td>${core.text(T[4 * i + j], page.digits > 6 ? 17 : 4)}</td>`).join('')}</tr>`
    ).join('');
  };
  const heat = () => {
    const [c, w, h] = sheet(canvas), size = Math.min(w, h) / n;
    const top = Math.max(...M.map(Math.abs)) || 1;
    M.forEach((y, k) => {
      const share = y === 0 ? 0 : Math.max(0.06, 1 + Math.log10(Math.abs(y) / top) / 6);
      c.fillStyle = y === 0 ? ink('--back') : y > 0 ? `rgba(11,122,117,${share})` : `rgba(179,69,44,${share})`;
      c.fillRect(size * (k % n), size * Math.floor(k / n), size - 1, size - 1);
      if (size > 46) {
        c.fillStyle = share > 0.6 ? '#fff' : ink('--ink');
        c.textAlign = 'center';
        c.fillText(core.text(y, 3), size * (k % n + 0.5), size * (Math.floor(k / n) + 0.5) + 4, size - 6);
      }
    });
  };
  const gravity = s => {
    const g = s.g;
    page.most = Math.max(page.most ?? 1e-9, ...g.map(Math.abs));
    bars.forEach((bar, k) => {
      const part = 50 * Math.abs(g[k]) / page.most;
      bar.style.width = `${part}%`;
      bar.style.left = g[k] < 0 ? `${50 - part}%` : '50%';
      const all = page.digits > 6, value = all || Math.abs(g[k]) > 1e-12 * page.most ? g[k] : 0;
      bar.parentElement.nextElementSibling.textContent = core.text(value, all ? 17 : 4);
    });
  };
  canvas?.addEventListener('pointermove', e => {
    const size = Math.min(canvas.clientWidth, canvas.clientHeight) / n;
    const j = Math.floor(e.offsetX / size), i = Math.floor(e.offsetY / size);
    if (i < n && j < n) {
      const slides = [i, j].filter(k => data.rates[k][1] === 'm').length;
      const unit = ['kg m²', 'kg m', 'kg'][slides];
      tip.textContent = `M of ${data.rates[i][0]}, ${data.rates[j][0]}: ${core.text(M[i * n + j], 6)} ${unit}`;
    }
  });
  link.onchange = () => page.changed();
  page.listeners.push(() => {
    const s = page.state = core.functions.state(x);
    pose(s);
    if (canvas) {
      M = s.M;
      heat();
      gravity(s);
      byId('energy').textContent = `T ${core.text(s.kinetic_energy[0], 5)} J, V ${core.text(s.V[0], 5)} J`;
      byId('mass').textContent = [...s.c].map(y => core.text(y, 4)).join(', ');
    }
  });
}

// The motion of the robot let go where it stands: made, played, drawn.
function openSwing(page) {
  byId('walls').parentElement.hidden = !page.core.data.walls.length;
  const {core} = page, {x} = core, play = byId('play'), bar = byId('time');
  let rows = [], running = false, begun = 0;
  const show = k => {
    const row = rows[k];
    x.q.set(row.q);
    x.v?.set(row.v);
    x.a?.set(row.a);
    page.changed();
  };
  const at = () => Math.min(rows.length - 1, Number(bar.value));
  const tick = now => {
    if (!running) return;
    const t = Math.max(0, now - begun) / 1000, k = Math.min(rows.length - 1, Math.floor(t / (rows[1].t - rows[0].t)));
    bar.value = k;
    show(k);
    k === rows.length - 1 ? page.stop() : requestAnimationFrame(tick);
  };
  page.stop = () => {
    running = false;
    play.textContent = 'Play';
  };
  const make = () => {
    rows = core.swing(x.q, Number(byId('seconds').value), 0.001, 10, byId('walls').checked);
    bar.max = rows.length - 1;
    bar.value = 0;
    const E = rows.map(r => r.T + r.V), spread = Math.max(...E) - Math.min(...E);
    byId('drift').textContent = core.data.passive || (byId('walls').checked && core.data.walls.length) ? '' : `T + V is kept to ${core.text(spread, 2)} J`;
  };
  byId('swing').onclick = () => {
    make();
    running = rows.length > 1;
    begun = performance.now();
    play.textContent = 'Pause';
    requestAnimationFrame(tick);
  };
  play.onclick = () => {
    if (!rows.length) return byId('swing').onclick();
    running = !running;
    play.textContent = running ? 'Pause' : 'Play';
    if (at() >= rows.length - 1) bar.value = 0;
    begun = performance.now() - 1000 * rows[at()].t;
    requestAnimationFrame(tick);
  };
  bar.oninput = () => {
    page.stop();
    if (rows.length) show(at());
  };
  page.motion = () => rows;
  page.listeners.push(() => {
    const turning = core.data.coordinates;
    curves(byId('angles'), rows, turning.map(c => [c.name, r => r.q[c.q]]), at(),
      [...new Set(turning.map(c => c.unit))].join(', '));
    curves(byId('energies'), rows, [['T', r => r.T], ['V', r => r.V], ['T + V', r => r.T + r.V]], at(), 'J');
  });
}

// The smallest of 1, 2, 5 times a power of ten that is no less: steps between round ticks.
function round125(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return power * ([1, 2, 5, 10].find(y => y * power >= x * (1 - 1e-9)) ?? 10);
}

function curves(canvas, rows, lines, now, unit) {
  const [c, w, h] = sheet(canvas), left = 52, low = h - 22;
  c.fillStyle = c.strokeStyle = ink('--soft');
  c.textAlign = 'left';
  c.fillText(unit, 2, h - 6);
  if (rows.length < 2) {
    c.fillText('let it go, and its motion is drawn here', left, h / 2);
    return;
  }
  const all = lines.map(([, f]) => rows.map(f)), flat = all.flat();
  let [a, b] = flat.reduce(([p, r], y) => [Math.min(p, y), Math.max(r, y)], [Infinity, -Infinity]);
  if (b - a < 1e-9) [a, b] = [a - 1, b + 1];
  const rise = round125((b - a) / 4), end = rows.at(-1).t, pace = round125(end / 4);
  [a, b] = [rise * Math.floor(a / rise), rise * Math.ceil(b / rise)];
  const X = t => left + (w - left - 8) * t / end, Y = y => low - (low - 18) * (y - a) / (b - a);
  c.lineWidth = 1;
  for (let k = 0; a + k * rise < b + rise / 2; k++) {
    const y = a + k * rise;
    c.globalAlpha = 0.3;
    c.strokeRect(left, Y(y), w - left - 8, 0);
    c.globalAlpha = 1;
    c.textAlign = 'right';
    c.fillText(Number((Math.abs(y) < rise / 2 ? 0 : y).toPrecision(4)), left - 6, Y(y) + 4);
  }
  c.textAlign = 'center';
  for (let t = 0; t < end + pace / 2; t += pace) {
    const last = t + pace >= end + pace / 2;
    c.fillText(`${Number(t.toPrecision(3))}${last ? ' s' : ''}`, Math.min(X(t), w - 16), h - 6);
  }
  lines.forEach((_, k) => {
    c.strokeStyle = COLOURS[k % COLOURS.length];
    c.lineWidth = 1.6;
    c.setLineDash(k >= COLOURS.length ? [5, 3] : []);
    c.beginPath();
    all[k].forEach((y, i) => (i ? c.lineTo(X(rows[i].t), Y(y)) : c.moveTo(X(rows[i].t), Y(y))));
    c.stroke();
  });
  c.setLineDash([]);
  c.textAlign = 'left';
  let at = left;
  lines.slice(0, 10).forEach(([name], k) => {
    c.fillStyle = COLOURS[k % COLOURS.length];
    const short = name.length > 14 ? `${name.slice(0, 13)}…` : name;
    if (at + c.measureText(short).width < w) c.fillText(short, at, 11);
    at += c.measureText(short).width + 10;
  });
  c.strokeStyle = ink('--soft');
  c.strokeRect(X(rows[now].t), 16, 0, low - 16);
}
