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
      if (form.dataset.sure) return;
      event.preventDefault();
      form.dataset.sure = 'yes';
      button.textContent = 'Press again: ' + button.textContent;
    });
  }
  // Hovering over a chart says the value under the pointer.
  for (const chart of document.querySelectorAll('.chart svg[data-points]')) {
    const says = chart.parentElement.querySelector('.says');
    const summary = says.textContent;
    const points = chart.dataset.points.split('|');
    chart.addEventListener('pointermove', (event) => {
      const box = chart.getBoundingClientRect();
      const left = Number(chart.dataset.left) / 600, share = (event.clientX - box.left) / box.width;
      const index = Math.round((share - left) / (1 - left) * (points.length - 1));
      if (points[index]) says.textContent = points[index];
    });
    chart.addEventListener('pointerleave', () => { says.textContent = summary; });
  }
  const topic = document.body.dataset.liveTopic;
  if (!topic || !window.EventSource) return;
  const bar = document.querySelector('.live'), state = document.getElementById('live-state'), pause = document.getElementById('live-pause');
  bar.hidden = false;
  let source = null, last = '', wrote = false;
  document.addEventListener('input', () => { wrote = true; });
  const show = (texts) => {
    for (const [name, text] of Object.entries(texts)) {
      for (const element of document.querySelectorAll('[data-live="' + CSS.escape(name) + '"]')) {
        if (element.textContent === text) continue;
        element.textContent = text;
        element.classList.remove('changed');
        void element.offsetWidth;
        element.classList.add('changed');
      }
    }
  };
  const take = (event) => {
    last = event.lastEventId;
    show(JSON.parse(event.data));
    state.textContent = 'live';
  };
  const open = () => {
    source = new EventSource(document.body.dataset.base + '/live?topic=' + encodeURIComponent(topic) + (last ? '&after=' + encodeURIComponent(last) : ''));
    source.addEventListener('look', take);
    source.addEventListener('lost', (event) => { show(JSON.parse(event.data)); state.textContent = 'the database does not answer; trying again'; });
    source.addEventListener('reload', (event) => {
      close();
      // Nobody loses what they are writing.
      if (wrote) { state.textContent = 'the job is ' + event.data + ' now: load the page again'; return; }
      const address = new URL(location);
      address.searchParams.delete('said');
      location.replace(address);
    });
    source.onerror = () => {
      state.textContent = source.readyState === EventSource.CLOSED ? 'no longer live: load the page again, perhaps to sign in' : 'connection lost; trying again';
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
