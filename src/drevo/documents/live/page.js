// Sliders and values of a live page.
const byId = name => document.getElementById(name);

function openPage(core) {
  const {data, x} = core, page = {core, listeners: [], digits: 6};
  const sliders = [...document.querySelectorAll('input[data-input]')];
  const cells = [...document.querySelectorAll('[data-slot]')];
  const shown = new Set(), place = new Map();
  for (const cell of cells) place.set(cell, Number(cell.dataset.slot));
  const seen = new IntersectionObserver(entries => {  // only what can be read is written
    for (const e of entries) e.isIntersecting ? shown.add(e.target) : shown.delete(e.target);
    later();
  }, {rootMargin: '200px'});
  const groups = new Set(cells.map(c => c.closest('section')));
  groups.forEach(g => seen.observe(g));
  const of = new Map([...groups].map(g => [g, cells.filter(c => c.closest('section') === g)]));
  let waiting = false;
  const later = () => {
    if (!waiting) requestAnimationFrame(page.draw);
    waiting = true;
  };
  page.changed = later;
  page.fill = all => {
    if (!core.functions.values) return;
    page.values = core.functions.values(x).values;
    for (const g of all ? groups : shown)
      for (const cell of of.get(g)) {
        const text = core.text(page.values[place.get(cell)], page.digits);
        if (cell.textContent !== text) cell.textContent = text;
      }
  };
  page.draw = () => {
    waiting = false;
    core.unit(x);
    for (const s of sliders) {
      const y = x[s.dataset.input][s.dataset.place], box = s.nextElementSibling;
      if (document.activeElement !== s || Number(s.value) !== y) s.value = y;
      const beyond = y < Number(s.min) || y > Number(s.max);  // a slider goes from limit to limit where there are some
      box.classList.toggle('beyond', beyond);
      if (!box.classList.contains('bad')) box.title = beyond ? `outside ${s.min} to ${s.max}` : '';
      if (document.activeElement !== box && !box.classList.contains('bad')) box.value = Number(y.toPrecision(5));
    }
    page.fill(false);
    for (const f of page.listeners) f(page);
  };
  const take = (s, text) => {
    const y = Number(text.trim().replace(',', '.')), box = s.nextElementSibling;
    const good = text.trim() !== '' && Number.isFinite(y);
    box.classList.toggle('bad', !good);
    box.setAttribute('aria-invalid', String(!good));
    box.title = good ? '' : `${text} is no number: the robot stays where it is`;
    if (good) x[s.dataset.input][s.dataset.place] = y;
    page.stop?.();
    later();
  };
  for (const s of sliders) {
    s.oninput = () => take(s, s.value);
    s.nextElementSibling.onchange = e => take(s, e.target.value);
  }
  page.set = (name, values) => { x[name].set(values); later(); };
  const forget = () => sliders.forEach(s => s.nextElementSibling.classList.remove('bad'));
  byId('reset')?.addEventListener('click', () => {
    forget();
    for (const [name, given] of Object.entries(data.inputs)) x[name].set(given.value);
    page.fit?.();
    page.stop?.();
    later();
  });
  byId('random')?.addEventListener('click', () => {
    forget();
    for (const [name, given] of Object.entries(data.inputs))
      if (name !== 'parameters') x[name].forEach((_, k) => {
        x[name][k] = given.low[k] + Math.random() * (given.high[k] - given.low[k]);
      });
    page.stop?.();
    later();
  });
  byId('digits')?.addEventListener('change', e => {
    page.digits = e.target.checked ? 17 : 6;
    later();
  });
  addEventListener('beforeprint', () => page.fill(true));
  later();
  return page;
}
