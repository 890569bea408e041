// The handle on a link of a live page: dragged across the view, the robot follows by inverse kinematics.
function openHandle(page, scene, camera, canvas) {
  const {core} = page, {x} = core, link = byId('handle'), kind = byId('handle-kind'), said = byId('handle-note');
  const ball = new THREE.Mesh(new THREE.SphereGeometry(core.data.figure.size / 40, 24, 16),
    material('#a83e6f', {transparent: true, opacity: 0.8, depthTest: false}));
  ball.renderOrder = 1;
  scene.add(ball);
  let target = null, shift = null;
  const pointer = e => {  // in the coordinates of the projection
    const r = canvas.getBoundingClientRect();
    return [2 * (e.clientX - r.left) / r.width - 1, 1 - 2 * (e.clientY - r.top) / r.height];
  };
  const place = () => ball.position.clone().project(camera);
  const draw = T => { ball.position.set(T[3], T[7], T[11]); };
  link.onchange = kind.onchange = () => {
    said.textContent = '';
    page.changed();
  };
  page.listeners.unshift(() => {
    ball.visible = kind.value !== '';
    if (page.state) draw(poseAt(core, link.value, x.q));
  });
  const near = e => {  // fingers are wider than pointers
    const [a, b] = pointer(e), at = place(), wide = e.pointerType === 'touch' ? 28 : 14;
    return Math.hypot((a - at.x) * canvas.clientWidth, (b - at.y) * canvas.clientHeight) / 2 < wide;
  };
  const turned = (T, e) => {  // about the axes of the view
    const m = camera.matrixWorld.elements, about = k => new THREE.Vector3(m[k], m[k + 1], m[k + 2]);
    const Q = new THREE.Quaternion().setFromAxisAngle(about(4), e.movementX / 150)
      .premultiply(new THREE.Quaternion().setFromAxisAngle(about(0), e.movementY / 150));
    const columns = [0, 1, 2].map(j => new THREE.Vector3(T[j], T[4 + j], T[8 + j]).applyQuaternion(Q));
    columns.forEach((c, j) => [T[j], T[4 + j], T[8 + j]] = [c.x, c.y, c.z]);
  };
  const moved = (T, e) => {
    const [a, b] = pointer(e), p = new THREE.Vector3(a - shift[0], b - shift[1], shift[2]).unproject(camera);
    [T[3], T[7], T[11]] = [p.x, p.y, p.z];
  };
  return {
    take(e) {
      if (!ball.visible || e.buttons !== 1 || e.shiftKey || !near(e)) return;
      target = Float64Array.from(poseAt(core, link.value, x.q));
      const at = place(), [a, b] = pointer(e);
      shift = [a - at.x, b - at.y, at.z];
      page.stop?.();
    },
    drag(e) {
      if (!target) return false;
      (kind.value === 'direction' ? turned : moved)(target, e);
      const {q, error: [length, angle]} = reach(core, x.q, link.value, target, {turns: kind.value !== 'position', steps: 12});
      page.set('q', q);
      const far = [];
      if (length > 1e-3 * core.data.figure.size) far.push(`${core.text(length, 2)} m`);
      if (angle > 0.01) far.push(`${core.text(180 / Math.PI * angle, 2)}°`);
      said.textContent = far.length ? `out of reach by ${far.join(', ')}` : '';
      return true;
    },
    drop() { target = null; },
    place,
  };
}
