// The robot of a live page, drawn with three.js: geometry, or a figure of joints, links and inertia ellipsoids.
function openFigure(page) {
  const canvas = byId('figure'), f = page.core.data.figure;
  let renderer;
  try {
    renderer = new THREE.WebGLRenderer({canvas, antialias: true, alpha: true, preserveDrawingBuffer: true});
  } catch {
    canvas.replaceWith(Object.assign(document.createElement('p'), {textContent: 'This browser has no WebGL to draw with.'}));
    return;
  }
  Object.assign(f, extent(page.core));
  const scene = new THREE.Scene(), camera = new THREE.PerspectiveCamera(35, 1, f.size / 100, f.size * 100);
  camera.up.set(...f.up);
  scene.add(new THREE.HemisphereLight(0xffffff, 0x8899aa, 2.2));
  const sun = new THREE.DirectionalLight(0xffffff, 1.8);
  sun.position.set(...f.up.map((u, k) => 2 * u + [0.9, -1.2, 0.5][k]));
  scene.add(sun);
  const layers = {shapes: [], figure: [], frames: [], masses: [], ellipsoids: [], contacts: []};
  const links = f.links.map(l => {
    const group = new THREE.Group();
    group.matrixAutoUpdate = false;
    scene.add(group);
    dress(group, l, f.size, layers);
    return group;
  });
  const bones = f.bones.map(() => {
    const bone = new THREE.Mesh(new THREE.CylinderGeometry(1, 1, 1, 12), material('#8a97a6'));
    scene.add(bone);
    layers.figure.push(bone);
    return bone;
  });
  page.groups = links;
  scene.add(floor(f));
  for (const [name, parts] of Object.entries(layers)) {
    const box = byId(`show-${name}`);
    const show = () => {
      for (const p of parts) p.visible = box.checked;
      page.changed();
    };
    box.parentElement.hidden = !parts.length || (name === 'figure' && !f.bones.length);
    box.onchange = show;
    for (const p of parts) p.visible = box.checked;
  }
  page.handle = openHandle(page, scene, camera, canvas);
  const eye = orbit(canvas, camera, f, page.changed, page.handle);
  page.fit = () => eye.fit(extent(page.core));
  canvas.addEventListener('dblclick', () => {
    page.fit();
    page.changed();
  });
  page.listeners.push(() => {
    links.forEach((group, k) => {
      const {row, offset} = f.links[k], T = placed(page.state.poses, row, offset);
      group.matrix.set(...T, 0, 0, 0, 1);
    });
    bones.forEach((bone, k) => stretch(bone, links, f.bones[k], f.size));
    const w = canvas.clientWidth, h = canvas.clientHeight;
    renderer.setPixelRatio(window.devicePixelRatio || 1);
    renderer.setSize(w, h, false);
    camera.aspect = w / h;
    camera.updateProjectionMatrix();
    eye();
    renderer.render(scene, camera);
  });
  byId('picture')?.addEventListener('click', () => {
    page.draw();
    Object.assign(document.createElement('a'), {href: canvas.toDataURL('image/png'), download: `${page.core.data.robot}.png`}).click();
  });
  new ResizeObserver(page.changed).observe(canvas);
}

// Where the robot stands at first: the middle of it and how far it reaches.
function extent(core) {
  const {links} = core.data.figure, {poses} = core.functions.state(core.x);
  const low = [1 / 0, 1 / 0, 1 / 0], high = low.map(y => -y), up = core.data.figure.up;
  let ground = 0;
  for (const l of links) {
    const T = placed(poses, l.row, l.offset);
    for (const p of [[0, 0, 0], l.com, ...l.contacts, ...l.shapes.flatMap(s => s.corners)].filter(Boolean)) {
      const at = [0, 1, 2].map(i => T[4 * i] * p[0] + T[4 * i + 1] * p[1] + T[4 * i + 2] * p[2] + T[4 * i + 3]);
      at.forEach((y, i) => {
        low[i] = Math.min(low[i], y);
        high[i] = Math.max(high[i], y);
      });
      ground = Math.min(ground, at[0] * up[0] + at[1] * up[1] + at[2] * up[2]);
    }
  }
  return {ground, middle: low.map((y, i) => (y + high[i]) / 2), size: Math.hypot(...low.map((y, i) => high[i] - y)) || 1};
}

const material = (colour, more = {}) => new THREE.MeshStandardMaterial({color: colour, roughness: 0.65, metalness: 0.05, ...more});

// What belongs to a link, in its axes.
function dress(group, link, size, layers) {
  const put = (layer, mesh, at, turn) => {
    if (at) mesh.position.set(...at);
    if (turn) mesh.setRotationFromMatrix(new THREE.Matrix4().set(...turn.flatMap((y, k) => (k % 3 === 2 ? [y, 0] : [y])), 0, 0, 0, 1));
    group.add(mesh);
    layers[layer].push(mesh);
    return mesh;
  };
  for (const s of link.shapes) {
    const mesh = new THREE.Mesh(solid(s), material(s.colour ?? '#c3cad3', {side: 2}));
    const holder = put('shapes', new THREE.Group(), s.at, s.turn);
    if (s.kind === 'cylinder' || s.kind === 'capsule') mesh.rotation.x = Math.PI / 2;
    holder.add(mesh);
  }
  for (const j of link.joints) {
    const r = size / 45, slides = j.kind === 'prismatic';
    const shape = j.axis ? (slides ? new THREE.BoxGeometry(r, 3 * r, r) : new THREE.CylinderGeometry(r, r, 3 * r, 24)) : new THREE.SphereGeometry(1.3 * r, 20, 14);
    const mesh = put('figure', new THREE.Mesh(shape, material('#0b7a75')), j.at);
    if (j.axis) mesh.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), new THREE.Vector3(...j.axis));
  }
  put('frames', triad(size / 12));
  if (link.ellipsoid) {
    put('masses', new THREE.Mesh(new THREE.SphereGeometry(size / 70, 16, 12), material('#b3452c')), link.com);
    const e = put('ellipsoids', new THREE.Mesh(new THREE.SphereGeometry(1, 28, 20), material('#c98a1b', {transparent: true, opacity: 0.55})), link.com, link.turn);
    e.scale.set(...link.ellipsoid.map(y => Math.max(y, size / 500)));
  }
  for (const p of link.contacts) put('contacts', new THREE.Mesh(new THREE.SphereGeometry(size / 90, 12, 8), material('#7a4fa3')), p);
}

function solid(s) {
  if (s.kind === 'box') return new THREE.BoxGeometry(...s.size);
  if (s.kind === 'sphere') return new THREE.SphereGeometry(s.size[0], 32, 20);
  if (s.kind === 'cylinder') return new THREE.CylinderGeometry(s.size[0], s.size[0], s.size[1], 36);
  if (s.kind === 'capsule') return new THREE.CapsuleGeometry(s.size[0], s.size[1], 10, 28);
  const whole = new Int16Array(bytesOf(s.points).buffer), g = new THREE.BufferGeometry();
  g.setAttribute('position', new THREE.BufferAttribute(Float32Array.from(whole, (y, k) => s.middle[k % 3] + y * s.unit), 3));
  g.setIndex(new THREE.BufferAttribute(new Uint16Array(bytesOf(s.faces).buffer), 1));
  const flat = g.toNonIndexed();
  flat.computeVertexNormals();
  return flat;
}

function triad(length) {
  const g = new THREE.BufferGeometry(), k = length;
  g.setAttribute('position', new THREE.BufferAttribute(new Float32Array([0, 0, 0, k, 0, 0, 0, 0, 0, 0, k, 0, 0, 0, 0, 0, 0, k]), 3));
  g.setAttribute('color', new THREE.BufferAttribute(new Float32Array([1, 0, 0, 1, 0, 0, 0, 0.6, 0, 0, 0.6, 0, 0.1, 0.3, 1, 0.1, 0.3, 1]), 3));
  return new THREE.LineSegments(g, new THREE.LineBasicMaterial({vertexColors: true}));
}

// The ground across gravity, through the base or what hangs lowest, in squares of a round size.
function floor(f) {
  const unit = 10 ** Math.floor(Math.log10(f.size / 2)), n = Math.ceil(f.size / unit), points = [];
  for (let k = -n; k <= n; k++) points.push(-n, k, 0, n, k, 0, k, -n, 0, k, n, 0);
  const g = new THREE.BufferGeometry();
  g.setAttribute('position', new THREE.BufferAttribute(new Float32Array(points.map(y => y * unit)), 3));
  const lines = new THREE.LineSegments(g, new THREE.LineBasicMaterial({color: '#8a97a6', transparent: true, opacity: 0.28}));
  const up = new THREE.Vector3(...f.up);
  lines.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), up);
  lines.position.copy(up).multiplyScalar(f.ground);
  return lines;
}

// A link's line from its base's frame to a joint.
function stretch(bone, links, {from, to, at}, size) {
  const a = new THREE.Vector3().setFromMatrixPosition(links[from].matrix);
  const b = new THREE.Vector3(...at).applyMatrix4(links[to].matrix), along = b.clone().sub(a), length = along.length();
  bone.position.copy(a).add(b).multiplyScalar(0.5);
  bone.scale.set(size / 120, Math.max(length, 1e-9), size / 120);
  if (length > 1e-9) bone.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), along.normalize());
}

// The eye on a sphere about a middle: drag turns, the wheel goes near, the right button or shift shifts, a double click fits.
function orbit(canvas, camera, f, changed, handle) {
  const middle = new THREE.Vector3(...f.middle), up = new THREE.Vector3(...f.up);
  const side = new THREE.Vector3(Math.abs(f.up[0]) < 0.9 ? 1 : 0, Math.abs(f.up[0]) < 0.9 ? 0 : 1, 0).addScaledVector(up, -f.up[0]).normalize();
  const other = up.clone().cross(side);
  let turn = -0.9, height = 0.35, far = f.size * 1.9;
  canvas.onpointerdown = e => {
    canvas.setPointerCapture(e.pointerId);
    handle.take(e);
  };
  canvas.onpointerup = canvas.onpointercancel = handle.drop;
  canvas.oncontextmenu = e => e.preventDefault();
  canvas.onpointermove = e => {
    if (!e.buttons || handle.drag(e)) return;
    if (e.buttons === 2 || e.shiftKey) {
      const scale = far / canvas.clientHeight, m = camera.matrixWorld.elements;
      middle.addScaledVector(new THREE.Vector3(m[0], m[1], m[2]), -e.movementX * scale);
      middle.addScaledVector(new THREE.Vector3(m[4], m[5], m[6]), e.movementY * scale);
    } else {
      turn -= e.movementX / 150;
      height = Math.min(1.5, Math.max(-1.5, height + e.movementY / 150));
    }
    changed();
  };
  canvas.addEventListener('wheel', e => {
    e.preventDefault();
    far *= Math.exp(e.deltaY / 800);
    changed();
  }, {passive: false});
  const eye = () => {
    camera.position.copy(middle).addScaledVector(side, far * Math.cos(height) * Math.cos(turn))
      .addScaledVector(other, far * Math.cos(height) * Math.sin(turn)).addScaledVector(up, far * Math.sin(height));
    camera.lookAt(middle);
  };
  eye.fit = ({middle: at, size}) => {
    middle.set(...at);
    far = size * 1.9;
  };
  return eye;
}
