'use strict';
(() => {
  const typing = (element) => /^(INPUT|SELECT|TEXTAREA)$/.test(element.tagName) || element.isContentEditable;
  const rows = () => [...document.querySelectorAll('tbody tr')];
  let at = -1;
  const go = (step) => {
    const all = rows();
    if (!all.length) return;
    all[at]?.classList.remove('here');
    at = Math.max(0, Math.min(all.length - 1, at + step));
    all[at].classList.add('here');
    const link = all[at].querySelector('a');
    if (link) link.focus();
    all[at].scrollIntoView({ block: 'nearest' });
  };
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const keys = document.getElementById('keys');
    switch (event.key) {
      case '/': document.getElementById('search')?.focus(); break;
      case 'j': go(1); break;
      case 'k': go(at < 0 ? 1 : -1); break;
      case 'x': rows()[at]?.querySelector('.pick')?.click(); break;
      case 'g': document.querySelector('.brand').click(); break;
      case 'p': document.getElementById('live-pause')?.click(); break;
      case '?': keys.showModal(); break;
      default: return;
    }
    event.preventDefault();
  });
  for (const form of document.querySelectorAll('form.grave')) {
    form.addEventListener('submit', (event) => {
      const button = form.querySelector('button');
      if (form.dataset.sure) {
        const sure = document.createElement('input');
        sure.type = 'hidden'; sure.name = 'sure'; sure.value = 'yes';
        form.append(sure);
        return;
      }
      event.preventDefault();
      form.dataset.sure = 'yes';
      button.textContent = 'Press again: ' + button.textContent;
    });
  }
  // What is only of use with a script is made by it.
  const button = (text, where, act) => {
    const made = document.createElement('button');
    made.type = 'button'; made.textContent = text;
    made.addEventListener('click', () => act(made));
    where.append(made);
  };
  const pick = document.getElementById('pick');
  if (pick) button('Select all on this page', pick, () => {
    const boxes = [...document.querySelectorAll('.pick')], every = boxes.every((box) => box.checked);
    for (const box of boxes) box.checked = !every;
  });
  if (navigator.clipboard) for (const code of document.querySelectorAll('.code')) {
    button('Copy', code, (made) => navigator.clipboard.writeText(code.querySelector('pre, .tree').textContent)
      .then(() => { made.textContent = 'Copied'; }, () => { made.textContent = 'The browser does not allow it'; }));
  }
  // Ctrl K opens a field that finds pages, queues, kinds and numbers.
  const palette = document.getElementById('palette');
  if (palette) {
    const field = palette.querySelector('input'), place = palette.querySelector('div');
    let soon = 0, asked = 0;
    const find = async () => {
      const mine = ++asked;
      try {
        const found = await (await fetch(palette.dataset.from + '?q=' + encodeURIComponent(field.value.trim()))).json();
        if (mine !== asked) return;
        const list = document.createElement('ul');
        list.className = 'plain';
        list.append(...found.map(({ label, href }) => {
          const item = document.createElement('li'), link = document.createElement('a');
          link.href = href; link.textContent = label;
          item.append(link);
          return item;
        }));
        place.replaceChildren(...(found.length ? [list] : []));
      } catch { place.replaceChildren(); }
    };
    field.addEventListener('input', () => { clearTimeout(soon); soon = setTimeout(find, 120); });
    palette.addEventListener('keydown', (event) => {
      const links = [...place.querySelectorAll('a')], here = links.indexOf(document.activeElement);
      if (event.key === 'ArrowDown') links[Math.min(here + 1, links.length - 1)]?.focus();
      else if (event.key === 'ArrowUp') (links[here - 1] ?? field).focus();
      else if (event.key === 'Enter' && here < 0) links[0]?.click();
      else return;
      event.preventDefault();
    });
    document.addEventListener('keydown', (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== 'k' || palette.open) return;
      event.preventDefault();
      palette.showModal();
      field.select();
      find();
    });
  }
  // Hovering over a chart says the value under the pointer.
  for (const chart of document.querySelectorAll('.chart svg[data-points]')) {
    const says = chart.closest('.chart').querySelector('.says');
    const summary = says.textContent;
    const points = chart.dataset.points.split('|');
    chart.addEventListener('pointermove', (event) => {
      const box = chart.getBoundingClientRect();
      const index = Math.round((event.clientX - box.left) / box.width * (points.length - 1));
      if (points[index]) says.textContent = points[index];
    });
    chart.addEventListener('pointerleave', () => { says.textContent = summary; });
  }
  // A browser knows its zone: local times then need no typing.
  const zone = document.getElementById('zone');
  if (zone && !zone.value) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || '';
  const topic = document.body.dataset.liveTopic;
  if (!topic || !window.EventSource) return;
  const bar = document.querySelector('.live'), state = document.getElementById('live-state'), pause = document.getElementById('live-pause');
  bar.hidden = false;
  let source = null, last = '', wrote = false;
  document.addEventListener('input', () => { wrote = true; });
  // What passes by itself is one word, so that nothing on the page moves; the rest stands in its title.
  const tell = (word, more) => { state.textContent = word; state.title = more; };
  const show = (texts) => {
    for (const [name, text] of Object.entries(texts)) {
      for (const element of document.querySelectorAll('[data-live-value="' + CSS.escape(name) + '"]')) element.value = Number(text);
      for (const element of document.querySelectorAll('[data-live="' + CSS.escape(name) + '"]')) {
        if (element.textContent === text) continue;
        const frame = element.closest('pre'), end = frame && frame.scrollHeight - frame.scrollTop - frame.clientHeight < 40;
        element.textContent = text;
        if (end) frame.scrollTop = frame.scrollHeight;
      }
    }
  };
  const take = (event) => {
    last = event.lastEventId;
    show(JSON.parse(event.data));
    tell('live', '');
  };
  const open = () => {
    source = new EventSource(document.body.dataset.base + '/live?topic=' + encodeURIComponent(topic) + (last ? '&after=' + encodeURIComponent(last) : ''));
    source.addEventListener('look', take);
    source.addEventListener('lost', (event) => { show(JSON.parse(event.data)); tell('no answer', 'the database does not answer; trying again'); });
    source.addEventListener('reload', (event) => {
      close();
      // Nobody loses what they are writing.
      if (wrote) { state.textContent = 'the job is ' + event.data + ' now: load the page again'; return; }
      const address = new URL(location);
      address.searchParams.delete('said');
      location.replace(address);
    });
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) tell('no longer live: load the page again, perhaps to sign in', '');
      else tell('reconnecting', 'connection lost; trying again');
    };
  };
  const close = () => { source?.close(); source = null; };
  pause.addEventListener('click', () => {
    const paused = pause.getAttribute('aria-pressed') === 'true';
    pause.setAttribute('aria-pressed', String(!paused));
    pause.textContent = paused ? 'Pause live updates' : 'Go on with live updates';
    if (paused) open(); else { close(); state.textContent = 'paused'; }
  });
  addEventListener('pagehide', close);
  open();
})();
