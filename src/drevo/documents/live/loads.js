// Loads in sections of the links at rest, drawn along them: N, Q, T or M, of the tables that the page holds.
const LOADS = {
  N: {unit: 'N', colour: '#3b6fb6', value: l => -l[0], to: l => [-l[0], 0]},
  Q: {unit: 'N', colour: '#c98a1b', value: l => Math.hypot(l[1], l[2]), to: l => [l[1], l[2]]},
  T: {unit: 'N m', colour: '#7a4fa3', value: l => l[3], to: l => [0, l[3]]},
  M: {unit: 'N m', colour: '#b3452c', value: l => Math.hypot(l[4], l[5]), to: l => [l[5], -l[4]]},
};
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const back = (T, x) => [0, 1, 2].map(j => T[j] * x[0] + T[4 + j] * x[1] + T[8 + j] * x[2]);  // into link axes
const plus = (a, k, b) => a.map((y, i) => y + k * b[i]);

// Six loads in every section of one link: force and moment of the inboard piece on the outboard one, section axes.
function sectionLoads(core, t, poses, W) {
  const {links} = core.data.figure, place = k => placed(poses, links[k].row, links[k].offset);
  const T = place(t.link), weight = back(T, core.data.gravity);
  const hung = t.children.map(c => {
    const S = place(c.link), w = [...W.subarray(6 * c.row, 6 * c.row + 6)];
    const arm = [S[3] - T[3], S[7] - T[7], S[11] - T[11]];
    return [c.beyond, back(T, w.slice(0, 3)), back(T, plus(w.slice(3), 1, cross(arm, w.slice(0, 3))))];
  });
  return t.parts.map(([m, ...c], k) => {
    let f = weight.map(y => -m * y), n = cross(c, weight).map(y => -y);
    for (const [beyond, force, moment] of hung) [f, n] = [plus(f, beyond[k], force), plus(n, beyond[k], moment)];
    n = plus(n, -1, cross(t.places[k], f));
    return [f, n].flatMap(v => [0, 1, 2].map(j => v[0] * t.axes[0][j] + v[1] * t.axes[1][j] + v[2] * t.axes[2][j]));
  });
}

function openLoads(page) {
  const {core} = page, {data} = core, kind = byId('loads'), still = new Float64Array(data.inputs.v.value.length);
  const ribbons = page.groups && data.loads.map(t => {
    const g = new THREE.BufferGeometry(), n = t.places.length;
    g.setAttribute('position', new THREE.BufferAttribute(new Float32Array(6 * n), 3));
    g.setIndex(Array.from({length: n - 1}, (_, k) => [2 * k, 2 * k + 1, 2 * k + 2, 2 * k + 2, 2 * k + 1, 2 * k + 3]).flat());
    const mesh = new THREE.Mesh(g, material('#000', {side: 2, transparent: true, opacity: 0.65, depthWrite: false}));
    mesh.frustumCulled = false;
    page.groups[t.link].add(mesh);
    return mesh;
  });
  kind.onchange = () => page.changed();
  page.listeners.splice(1, 0, () => {
    const shown = LOADS[kind.value];
    ribbons?.forEach(mesh => { mesh.visible = !!shown; });
    byId('load-rows').innerHTML = byId('load-note').textContent = '';
    if (!shown) return;
    const {W} = core.functions.wrenches({q: core.x.q, v: still, a: still});
    page.loads = data.loads.map(t => sectionLoads(core, t, page.state.poses, W));
    const values = page.loads.map(rows => rows.map(shown.value).reduce((a, y) => (Math.abs(y) > Math.abs(a) ? y : a), 0));
    const most = Math.max(...values.map(Math.abs)), scale = 0.16 * data.figure.size / (most || 1);
    ribbons?.forEach((mesh, i) => {
      const at = mesh.geometry.attributes.position, t = data.loads[i];
      mesh.material.emissive.set(shown.colour);
      page.loads[i].forEach((l, k) => {
        const [y, z] = shown.to(l), p = t.places[k];
        at.setXYZ(2 * k, ...p);
        at.setXYZ(2 * k + 1, ...p.map((x, j) => x + scale * (t.axes[j][1] * y + t.axes[j][2] * z)));
      });
      at.needsUpdate = true;
    });
    byId('load-rows').innerHTML = data.loads.map((t, i) => {
      const name = document.createElement('i');
      name.textContent = data.figure.links[t.link].name;
      const part = most ? 100 * Math.abs(values[i]) / most : 0;
      return `<tr><td>${name.innerHTML}</td><td class="lane"><div style="width:${part}%;background:${shown.colour}"></div></td>`
        + `<td class="n">${core.text(values[i], page.digits > 6 ? 17 : 4)}</td></tr>`;
    }).join('');
    byId('load-note').textContent = `the largest of each link, ${shown.unit}, at rest where it stands; the longest ordinate is ${core.text(most, 3)} ${shown.unit}`;
  });
}
