// What pointing adds. Without this script the page shows the same figures, tables and texts.
(function () {
  'use strict';
  var all = function (css, root) { return Array.prototype.slice.call((root || document).querySelectorAll(css)); };
  var tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  tip.setAttribute('role', 'status');
  document.body.appendChild(tip);

  var where = null;
  function show(text, place) {
    tip.textContent = text;
    tip.hidden = false;
    where = place;
    put();
  }
  function put() {
    if (tip.hidden || !where) return;
    var at = where(), box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(at.x + 14, innerWidth - box.width - 4)) + 'px';
    tip.style.top = Math.max(4, at.y + 18 + box.height > innerHeight ? at.y - box.height - 12 : at.y + 18) + 'px';
  }
  function hide() { tip.hidden = true; }
  addEventListener('scroll', put, { passive: true });
  addEventListener('resize', put);
  addEventListener('keydown', function (e) { if (e.key === 'Escape') hide(); });

  // Where something inside an SVG is on the screen, and back.
  function toScreen(svg, x, y) { var m = svg.getScreenCTM(); return { x: m.a * x + m.e, y: m.d * y + m.f }; }
  function fromScreen(svg, x, y) { var m = svg.getScreenCTM(); return { x: (x - m.e) / m.a, y: (y - m.f) / m.d }; }
  function ready(svg, how) {
    svg.setAttribute('tabindex', '0');
    svg.setAttribute('role', 'application');
    svg.setAttribute('aria-roledescription', 'chart');
    svg.setAttribute('aria-label', svg.getAttribute('aria-label') + ' ' + how);
  }

  // Plots: the nearest point speaks; arrow keys go from point to point.
  all('svg.plot').forEach(function (svg) {
    var points = all('.pt', svg).map(function (g) {
      var title = g.querySelector('title');
      var text = title.textContent;
      g.removeChild(title);
      return { g: g, text: text, x: +g.dataset.px, y: +g.dataset.py, series: g.parentNode };
    });
    if (!points.length) return;
    var at = null;
    var visible = function () { return points.filter(function (p) { return !p.series.classList.contains('off'); }); };
    function choose(p) {
      if (at) at.g.classList.remove('on');
      at = p;
      if (!p) return hide();
      p.g.classList.add('on');
      show(p.text, function () { return toScreen(svg, p.x, p.y); });
    }
    ready(svg, 'Arrow keys read the points.');
    svg.addEventListener('pointermove', function (e) {
      var here = fromScreen(svg, e.clientX, e.clientY), best = null, least = 26 * 26;
      visible().forEach(function (p) {
        var d = (p.x - here.x) * (p.x - here.x) + (p.y - here.y) * (p.y - here.y);
        if (d <= least) { least = d; best = p; } // what is drawn later lies on top
      });
      choose(best);
    });
    svg.addEventListener('pointerleave', function () { choose(null); });
    svg.addEventListener('blur', function () { choose(null); });
    svg.addEventListener('keydown', function (e) {
      var list = visible(), step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 'next', ArrowUp: 'next' }[e.key];
      if (!step || !list.length) return;
      e.preventDefault();
      var i = list.indexOf(at);
      if (i < 0) return choose(list[0]);
      if (step !== 'next') return choose(list[(i + step + list.length) % list.length]);
      var groups = list.map(function (p) { return p.series; }).filter(function (s, k, a) { return a.indexOf(s) === k; });
      var turn = e.key === 'ArrowDown' ? 1 : groups.length - 1;
      var next = groups[(groups.indexOf(at.series) + turn) % groups.length];
      choose(list.filter(function (p) { return p.series === next; }).sort(function (a, b) {
        return Math.abs(a.x - at.x) - Math.abs(b.x - at.x);
      })[0]);
    });
  });

  // Heat map: point at a pair of voices.
  var store = document.getElementById('data');
  var data = store ? JSON.parse(store.textContent) : {};
  all('svg.heat').forEach(function (svg) {
    var s = data.similarity;
    if (!s) return;
    var n = s.speakers.length, cursor = svg.querySelector('.cursor'), image = svg.querySelector('image');
    var left = +image.getAttribute('x'), top = +image.getAttribute('y'), cell = +image.getAttribute('width') / (2 * n);
    var row = 0, column = n;
    function value(i, j) {
      if (i < n) return j < n ? s.oo[i][j] : s.op[i][j - n];
      return j < n ? s.op[j][i - n] : s.pp[i - n][j - n];
    }
    function name(i) { return s.speakers[i % n] + (i < n ? ' original' : ' anonymized'); }
    function choose(i, j) {
      row = i; column = j;
      cursor.setAttribute('x', left + j * cell);
      cursor.setAttribute('y', top + i * cell);
      cursor.setAttribute('visibility', 'visible');
      var same = i % n === j % n ? '\nthe same person' : '';
      show(name(i) + ' with ' + name(j) + '\nsimilarity ' + value(i, j).toFixed(3) + same, function () {
        return toScreen(svg, left + (j + 1) * cell, top + (i + 1) * cell);
      });
    }
    function leave() { cursor.setAttribute('visibility', 'hidden'); hide(); }
    ready(svg, 'Arrow keys read the cells.');
    svg.addEventListener('pointermove', function (e) {
      var p = fromScreen(svg, e.clientX, e.clientY);
      var j = Math.floor((p.x - left) / cell), i = Math.floor((p.y - top) / cell);
      if (i >= 0 && j >= 0 && i < 2 * n && j < 2 * n) choose(i, j); else leave();
    });
    svg.addEventListener('pointerleave', leave);
    svg.addEventListener('blur', leave);
    svg.addEventListener('keydown', function (e) {
      var move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[e.key];
      if (!move) return;
      e.preventDefault();
      if (cursor.getAttribute('visibility') === 'hidden') return choose(row, column);
      choose((row + move[0] + 2 * n) % (2 * n), (column + move[1] + 2 * n) % (2 * n));
    });
  });

  // Choosing attackers, L and metric.
  all('.controls').forEach(function (box) {
    box.hidden = false;
    box.addEventListener('change', function () {
      all('input[type=checkbox]', box).forEach(function (c) {
        all('[data-series]').forEach(function (g) {
          if (g.dataset.series === c.value) g.classList.toggle('off', !c.checked);
        });
      });
      var chosen = {};
      all('select', box).forEach(function (s) { chosen[s.name] = s.value; });
      all('[data-length], [data-row]').forEach(function (p) {
        var other = function (is, want) { return is !== undefined && !!want && is !== want; };
        p.classList.toggle('off', other(p.dataset.length, chosen.length) || other(p.dataset.row, chosen.metric));
      });
      all('.grid-curves').forEach(function (g) {
        g.style.setProperty('--columns', chosen.length ? 1 : g.dataset.columns);
        g.classList.toggle('one', (!!chosen.length || g.dataset.columns === '1') && !chosen.metric);
      });
    });
  });

  // Tables and figures to take along: the files are in the page, packed.
  var KINDS = { csv: 'CSV', tex: 'LaTeX', md: 'Markdown', svg: 'SVG', png: 'PNG', bib: 'BibTeX' };
  var TYPES = { csv: 'text/csv', svg: 'image/svg+xml', md: 'text/markdown' };
  function unpack() {
    var bytes = Uint8Array.from(atob(data.files), function (c) { return c.charCodeAt(0); });
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Response(stream).json();
  }
  function save(blob, name) {
    var link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 10000);
  }
  function picture(text, name) {
    var image = new Image(), zoom = 2.5;
    image.onload = function () {
      var canvas = document.createElement('canvas');
      canvas.width = Math.round(image.naturalWidth * zoom);
      canvas.height = Math.round(image.naturalHeight * zoom);
      canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(function (blob) { save(blob, name); }, 'image/png');
    };
    image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
  }
  function take(stem, kind) {
    unpack().then(function (files) {
      if (kind === 'png') return picture(files[stem + '.svg'], stem + '.png');
      save(new Blob([files[stem + '.' + kind]], { type: (TYPES[kind] || 'text/plain') + ';charset=utf-8' }), stem + '.' + kind);
    });
  }
  if (data.files && typeof DecompressionStream !== 'undefined') all('.take').forEach(function (box) {
    box.hidden = false;
    box.dataset.kinds.split(' ').forEach(function (kind) {
      var button = document.createElement('button');
      button.type = 'button';
      button.textContent = KINDS[kind];
      button.setAttribute('aria-label', KINDS[kind] + ' of ' + box.dataset.take);
      button.addEventListener('click', function () { take(box.dataset.take, kind); });
      box.appendChild(button);
    });
  });

  // Long tables show their first rows until all are asked for.
  all('table.long').forEach(function (table) {
    var rows = table.tBodies[0].rows.length, box = table.parentNode;
    if (rows <= 25) return;
    var button = document.createElement('button');
    function word() { button.textContent = table.classList.contains('short') ? 'Show all ' + rows + ' rows' : 'Show the first 20 rows'; }
    button.type = 'button';
    button.className = 'more';
    table.classList.add('short');
    word();
    button.addEventListener('click', function () { table.classList.toggle('short'); word(); });
    box.parentNode.insertBefore(button, box.nextSibling);
  });

  // Tables that sort.
  all('table.sorts').forEach(function (table) {
    var body = table.tBodies[0];
    all('thead th', table).forEach(function (th, column) {
      var button = document.createElement('button');
      button.type = 'button';
      while (th.firstChild) button.appendChild(th.firstChild);
      th.appendChild(button);
      button.addEventListener('click', function () {
        var down = th.getAttribute('aria-sort') !== 'descending';
        all('thead th', table).forEach(function (other) { other.removeAttribute('aria-sort'); });
        th.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        var read = function (tr) {
          var cell = tr.cells[column], n = cell.dataset.sort;
          return n === undefined ? cell.textContent.trim() : parseFloat(n);
        };
        all('tr', body).sort(function (a, b) {
          var x = read(a), y = read(b);
          var order = typeof x === 'number' ? x - y : x.localeCompare(y, undefined, { numeric: true });
          return down ? -order : order;
        }).forEach(function (tr) { body.appendChild(tr); });
      });
    });
  });
})();
