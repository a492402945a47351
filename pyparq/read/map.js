"use strict";
(async function () {
  const $ = (id) => document.getElementById(id);
  const element = (tag, text, parent) => {
    const made = document.createElement(tag);
    if (text !== undefined && text !== null) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };

  // ---- the data

  async function load() {
    const script = $("data");
    if (script.type === "application/json") return JSON.parse(script.textContent);
    const bytes = Uint8Array.from(atob(script.textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  let doc;
  try {
    doc = await load();
  } catch (error) {
    $("name").textContent = "This page is compressed, and this browser cannot open it: " + error;
    return;
  }
  const { columns, groups, files, chunks, pages, query } = doc;
  const wide = columns.length, chunkCount = chunks.size ? chunks.size.length : 0, pageCount = pages.size.length;

  const FATES = [
    ["no query", "#9aa3ad"], ["read", "#D55E00"], ["ruled out by statistics", "#56B4E9"],
    ["ruled out by a Bloom filter", "#CC79A7"], ["ruled out by a dictionary", "#009E73"],
    ["ruled out by the page index", "#0072B2"], ["no row left by the filter columns", "#8b8f96"],
    ["column not asked for", null], ["not needed: every row matches", "#F0E442"], ["file ruled out by its partition", "#5d5f66"],
    ["ruled out by another index", "#E69F00"],
  ];
  const ENCODINGS = [
    ["dictionary", /DICTIONARY/, "#0072B2"], ["plain", /PLAIN/, "#56B4E9"], ["delta", /DELTA/, "#009E73"],
    ["byte stream split", /BYTE_STREAM/, "#E69F00"], ["run lengths", /RLE/, "#CC79A7"], ["other or not known", /(?:)/, "#9aa3ad"],
  ];
  const PARTS = [["dictionary page", "#E69F00"], ["Bloom filter", "#CC79A7"], ["ColumnIndex", "#F0E442"], ["OffsetIndex", "#009E73"], ["footer", "#5d5f66"]];
  const DATA = ["#0072B2", "#56B4E9"];
  const READ = 1;
  const KNOWN = ["pages not known", "", "from page headers", "rows estimated"];

  const number = (n) => n.toLocaleString("en-US");
  function size(n) {
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let k = 0;
    while (n >= 999.5 && k < units.length - 1) { n /= 1000; k += 1; }
    return (k ? n.toPrecision(3) : n) + " " + units[k];
  }
  const share = (part, whole) => (whole ? (100 * part / whole).toPrecision(3).replace(/\.?0+$/, "") : "0") + " %";
  const counted = (n, noun) => number(n) + " " + noun + (n === 1 ? "" : "s");

  // ---- where everything lies: one list of segments over all files, and one of rows

  const fileBase = [], groupFile = [], groupFirst = [];
  let total = 0, allRows = 0;
  files.forEach((file, f) => {
    fileBase.push(total);
    total += file.size;
    for (let k = 0; k < file.groups; k++) groupFile.push(f);
  });
  for (const rows of groups) { groupFirst.push(allRows); allRows += rows; }

  const firstPage = new Uint32Array(chunkCount + 1), pageChunk = new Uint32Array(pageCount);
  const pageOffset = new Float64Array(pageCount), pageFirst = new Float64Array(pageCount);
  const of = (list, k, otherwise) => (list ? list[k] : otherwise);
  for (let c = 0, p = 0; c < chunkCount; c++) {
    firstPage[c] = p;
    let at = chunks.start[c] + of(chunks.dictionary, c, 0), row = 0;
    for (let n = chunks.listed[c]; n > 0; n--, p++) {
      at += of(pages.skip, p, 0);
      pageChunk[p] = c; pageOffset[p] = at; pageFirst[p] = row;
      at += pages.size[p]; row += pages.rows[p];
    }
    firstPage[c + 1] = p;
  }
  const groupOf = (chunk) => Math.floor(chunk / wide), columnOf = (chunk) => chunk % wide;
  const fate = (p) => of(pages.fate, p, 0);
  const localFirst = files.map((_, f) => groupFile.indexOf(f));

  // kind: 0 data page, else 1 + place in PARTS
  const segments = [];
  for (let c = 0; c < chunkCount; c++) {
    if (chunks.size[c] < 0) continue;
    const base = fileBase[groupFile[groupOf(c)]];
    const dictionary = of(chunks.dictionary, c, 0);
    if (dictionary) segments.push([base + chunks.start[c], dictionary, 1, c]);
    for (const [kind, at, length] of [[2, "bloom", "bloomSize"], [3, "columnIndex", "columnIndexSize"], [4, "offsetIndex", "offsetIndexSize"]]) {
      const start = of(chunks[at], c, 0), long = of(chunks[length], c, 0);
      if (start && long) segments.push([base + start, long, kind, c]);
    }
  }
  for (let p = 0; p < pageCount; p++) {
    segments.push([fileBase[groupFile[groupOf(pageChunk[p])]] + pageOffset[p], pages.size[p], 0, p]);
  }
  files.forEach((file, f) => segments.push([fileBase[f] + file.footer, file.size - file.footer, 5, f]));
  segments.sort((a, b) => a[0] - b[0]);
  const segStart = Float64Array.from(segments, (s) => s[0]), segSize = Float64Array.from(segments, (s) => s[1]);
  const segKind = Uint8Array.from(segments, (s) => s[2]), segOf = Uint32Array.from(segments, (s) => s[3]);
  const segCount = segments.length;
  segments.length = 0;

  function wasRead(s) {
    const of_ = segOf[s];
    switch (segKind[s]) {
      case 0: return fate(of_) === READ;
      case 1: return Boolean(of(chunks.dictionaryRead, of_, 0));
      case 2: return Boolean(of(chunks.bloomRead, of_, 0));
      case 3: case 4: return Boolean(of(chunks.indexRead, of_, 0));
      default: return true;
    }
  }

  // ---- colours

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let theme = {};
  const readTheme = () => { for (const name of ["page", "panel", "ink", "soft", "line", "accent", "empty"]) theme[name] = css("--" + name); };
  const fateColour = (f) => FATES[f][1] || theme.empty;
  const cividis = [[0, 34, 78], [35, 62, 108], [87, 93, 109], [125, 124, 120], [165, 156, 116], [211, 193, 100], [254, 232, 56]];
  function ramp(t) {
    const at = Math.min(Math.max(t, 0), 1) * (cividis.length - 1), k = Math.min(Math.floor(at), cividis.length - 2), rest = at - k;
    return "rgb(" + cividis[k].map((v, i) => Math.round(v + (cividis[k + 1][i] - v) * rest)).join(",") + ")";
  }
  const encodingOf = (p) => of(pages.encoding, p, null) || of(chunks.encoding, pageChunk[p], "") || "";
  const encodingKind = (name) => {
    const first = name.split(" + ")[0];
    return first ? ENCODINGS.findIndex(([, pattern]) => pattern.test(first.replace("PLAIN_DICTIONARY", "DICTIONARY"))) : ENCODINGS.length - 1;
  };
  const encodingCache = new Map();
  function encodingColour(p) {
    const name = encodingOf(p);
    if (!encodingCache.has(name)) encodingCache.set(name, ENCODINGS[encodingKind(name)][2]);
    return encodingCache.get(name);
  }
  function ratioOf(p) {
    const own = of(pages.raw, p, -1);
    if (own > 0) return own / Math.max(pages.size[p], 1);
    const c = pageChunk[p];
    return chunks.size[c] > 0 ? of(chunks.raw, c, 0) / chunks.size[c] : 1;
  }
  let densest = 1e-9;
  for (let p = 0; p < pageCount; p++) if (pages.rows[p]) densest = Math.max(densest, pages.size[p] / pages.rows[p]);
  const logs = (value, low, high) => (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low));
  const COLOURS = {
    query: ["what became of it", (p) => fateColour(fate(p))],
    encoding: ["by encoding", encodingColour],
    ratio: ["by compression", (p) => ramp(logs(Math.max(ratioOf(p), 1), 1, 20))],
    density: ["by bytes per row", (p) => ramp(logs(Math.max(pages.size[p] / Math.max(pages.rows[p], 1), 0.01), 0.01, Math.max(densest, 0.02)))],
  };
  if (!query) delete COLOURS.query;

  // ---- canvases

  function prepare(canvas) {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    return [pen, width, height];
  }
  function lowerBound(list, value, length) { // first place whose value is not smaller
    let low = 0, high = length;
    while (low < high) { const mid = (low + high) >> 1; if (list[mid] < value) low = mid + 1; else high = mid; }
    return low;
  }
  function clamp(view, end) {
    const width = Math.min(view.end - view.start, end);
    view.start = Math.min(Math.max(view.start, 0), Math.max(end - width, 0));
    view.end = view.start + width;
  }
  function zoom(view, end, factor, at) {
    const width = Math.max((view.end - view.start) * factor, Math.min(16, end));
    const rest = (at - view.start) / (view.end - view.start || 1);
    view.start = at - width * rest; view.end = view.start + width;
    clamp(view, end);
  }

  const byteView = { start: 0, end: Math.max(total, 1) }, rowView = { start: 0, end: Math.max(allRows, 1) };

  function segmentColour(s) {
    if (segKind[s]) return query && !wasRead(s) ? mixed(PARTS[segKind[s] - 1][1]) : PARTS[segKind[s] - 1][1];
    if (query) return fateColour(fate(segOf[s]));
    return DATA[columnOf(pageChunk[segOf[s]]) % 2];
  }
  const mixes = new Map();
  function mixed(colour) { // half way to the panel: an index that was not asked
    const key = colour + theme.panel;
    if (!mixes.has(key)) {
      const parse = (text) => [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16));
      const a = parse(colour), b = parse(theme.panel.length === 7 ? theme.panel : "#ffffff");
      mixes.set(key, "rgb(" + a.map((v, k) => Math.round(v * 0.4 + b[k] * 0.6)).join(",") + ")");
    }
    return mixes.get(key);
  }

  const lower = (s, height) => (segKind[s] > 1 ? height * 0.3 : 0); // what is no page stands lower

  function drawSegments(pen, view, width, top, height) {
    const scale = width / (view.end - view.start);
    let s = Math.max(lowerBound(segStart, view.start, segCount) - 1, 0), drawn = -1, drawnRead = false;
    for (; s < segCount && segStart[s] < view.end; s++) {
      const left = (segStart[s] - view.start) * scale, long = segSize[s] * scale;
      if (left + long < 0) continue;
      const pixel = Math.floor(left);
      if (long < 1.2) { // several to a pixel: one that was read wins
        const read = query && wasRead(s);
        if (pixel === drawn && (drawnRead || !read)) continue;
        pen.fillStyle = segmentColour(s);
        pen.fillRect(pixel, top + lower(s, height), 1.2, height - lower(s, height));
        drawn = pixel; drawnRead = read;
        continue;
      }
      pen.fillStyle = segmentColour(s);
      pen.fillRect(left, top + lower(s, height), Math.max(long - (long > 4 ? 1 : 0), 1), height - lower(s, height));
      drawn = Math.floor(left + long - 0.01); drawnRead = query && wasRead(s);
    }
  }

  function drawOverview() {
    const [pen, width, height] = prepare($("overview"));
    pen.fillStyle = theme.empty;
    pen.fillRect(0, 0, width, height);
    drawSegments(pen, { start: 0, end: Math.max(total, 1) }, width, 3, height - 6);
    const left = byteView.start / total * width, right = byteView.end / total * width;
    pen.strokeStyle = theme.ink; pen.lineWidth = 2;
    pen.strokeRect(left + 1, 1, Math.max(right - left - 2, 2), height - 2);
  }

  let byteCursor = -1;
  function drawBytes() {
    const [pen, width, height] = prepare($("bytes"));
    const scale = width / (byteView.end - byteView.start);
    const x = (at) => (at - byteView.start) * scale;
    pen.fillStyle = theme.empty;
    pen.fillRect(0, 18, width, 44);
    drawSegments(pen, byteView, width, 18, 44);
    // above: row groups, or files
    const bands = files.length > 1
      ? files.map((file, f) => [fileBase[f], fileBase[f] + file.size, file.name])
      : groups.map((_, g) => {
        let low = Infinity, high = 0;
        for (let c = g * wide; c < (g + 1) * wide; c++) if (chunks.size[c] > 0) { low = Math.min(low, chunks.start[c]); high = Math.max(high, chunks.start[c] + chunks.size[c]); }
        return [low, high, "row group " + g];
      });
    let lastText = -1e9;
    bands.forEach(([low, high, name], k) => {
      const left = Math.max(x(low), 0), right = Math.min(x(high), width);
      if (!(right > left)) return;
      pen.fillStyle = k % 2 ? theme.soft : theme.ink;
      pen.fillRect(left, 13, Math.max(right - left - 1, 1), 3);
      const shown = right - left > pen.measureText(name).width + 8 ? name : right - left > 26 ? String(k) : "";
      if (shown && left > lastText) { pen.fillStyle = theme.soft; pen.fillText(shown, left + 2, 6); lastText = left + pen.measureText(shown).width + 6; }
    });
    // below: requests
    if (query) {
      pen.fillStyle = "#D55E00";
      files.forEach((file, f) => file.requests.forEach(([at, long]) => {
        const left = x(fileBase[f] + at), right = x(fileBase[f] + at + long);
        if (right >= 0 && left <= width) pen.fillRect(left, 66, Math.max(right - left, 2), 5);
      }));
    }
    pen.fillStyle = theme.soft;
    const step = niceStep((byteView.end - byteView.start) * 90 / width);
    for (let at = Math.ceil(byteView.start / step) * step; at <= byteView.end; at += step) {
      pen.fillRect(x(at), 62, 1, 3);
      const text = tickText(at, step), wide_ = pen.measureText(text).width;
      pen.fillText(text, Math.min(x(at), width - wide_ - 1), 84);
    }
    if (byteCursor >= 0 && byteCursor < segCount) {
      pen.strokeStyle = theme.ink; pen.lineWidth = 2;
      pen.strokeRect(x(segStart[byteCursor]) - 1, 17, Math.max(segSize[byteCursor] * scale, 2) + 2, 46);
    }
    drawOverview();
  }
  function niceStep(least) {
    const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
    return [1, 2, 5, 10].map((k) => k * power).find((step) => step >= least);
  }
  function tickText(at, step) {
    const [unit, by] = step >= 1e8 ? ["GB", 1e9] : step >= 1e5 ? ["MB", 1e6] : step >= 1e2 ? ["kB", 1e3] : ["B", 1];
    return number(Math.round(at / by * 10) / 10) + " " + unit;
  }

  // ---- rows across, columns down

  const rowHeight = 24;
  let order = [], cursor = { row: 0, page: -1 }, colouring = query ? "query" : "encoding";
  const columnBytes = new Float64Array(wide), columnRaw = new Float64Array(wide);
  for (let c = 0; c < chunkCount; c++) {
    if (chunks.size[c] > 0) { columnBytes[columnOf(c)] += chunks.size[c]; columnRaw[columnOf(c)] += Math.max(of(chunks.raw, c, 0), 0); }
  }
  const largest = columnBytes.reduce((a, b) => Math.max(a, b), 1);
  const gutter = () => ($("grid").clientWidth < 560 ? [92, 8] : [190, 96]);

  function arrange() {
    const wanted = $("find").value.toLowerCase(), by = $("order").value;
    order = [];
    for (let c = 0; c < wide; c++) if (!wanted || columns[c].name.toLowerCase().includes(wanted)) order.push(c);
    if (by === "size") order.sort((a, b) => columnBytes[b] - columnBytes[a]);
    if (by === "touched") order.sort((a, b) => (columns[b].touched || 0) - (columns[a].touched || 0));
    const asked = order.findIndex(wasAsked);
    cursor = { row: Math.max(asked, 0), page: -1 };
    $("spacer").style.height = Math.max(order.length * rowHeight + 20, 60) + "px";
    $("grid").style.height = Math.min(order.length * rowHeight + 20, $("scroller").clientHeight || 560) + "px";
    drawGrid();
    showColumn();
  }

  function wasAsked(c) {
    for (let k = c; k < chunkCount; k += wide) if (firstPage[k + 1] > firstPage[k]) return query ? fate(firstPage[k]) !== 7 : true;
    return false;
  }

  function clipped(pen, text, room) {
    if (text.length > 200) text = text.slice(0, 200);
    if (pen.measureText(text).width <= room) return text;
    while (text.length > 1 && pen.measureText(text + "…").width > room) text = text.slice(0, -Math.max(1, text.length >> 4));
    return text + "…";
  }

  function drawGrid() {
    const canvas = $("grid"), [pen, width, height] = prepare(canvas), [left, right] = gutter();
    const scale = (width - left - right) / (rowView.end - rowView.start), colour = COLOURS[colouring][1];
    const top = $("scroller").scrollTop, first = Math.floor(top / rowHeight);
    const [g0, g1] = groupsInView();
    for (let r = first; r < order.length && r * rowHeight - top < height - 18; r++) {
      const y = r * rowHeight - top + 2, c = order[r];
      pen.fillStyle = r === cursor.row ? theme.ink : theme.soft;
      pen.fillText(clipped(pen, columns[c].name, left - 10), 0, y + rowHeight / 2 - 2);
      pen.save();
      pen.beginPath(); pen.rect(left, y, width - left - right, rowHeight); pen.clip();
      pen.fillStyle = theme.empty;
      pen.fillRect(left, y, width - left - right, rowHeight - 4);
      drawPages(pen, c, g0, g1, left, scale, y, colour);
      pen.restore();
      if (right > 20) {
        pen.fillStyle = theme.soft;
        pen.fillRect(width - right + 8, y + 6, Math.max(34 * columnBytes[c] / largest, 1), rowHeight - 16);
        pen.fillText(size(columnBytes[c]), width - right + 46, y + rowHeight / 2 - 2);
      }
      if (r === cursor.row && cursor.page >= 0) {
        const p = cursor.page, g = groupOf(pageChunk[p]);
        pen.strokeStyle = theme.ink; pen.lineWidth = 2;
        const x0 = Math.max(left + (groupFirst[g] + pageFirst[p] - rowView.start) * scale, left);
        pen.strokeRect(x0, y - 1, Math.max(pages.rows[p] * scale, 3), rowHeight - 2);
      }
    }
    pen.fillStyle = theme.panel;
    pen.fillRect(0, height - 17, width, 17);
    pen.fillStyle = theme.soft;
    const step = niceStep((rowView.end - rowView.start) * 100 / Math.max(width - left - right, 1));
    for (let at = Math.ceil(rowView.start / step) * step; at <= rowView.end && allRows; at += step) {
      const text = at ? number(at) : "row 0", x = left + (at - rowView.start) * scale;
      pen.fillRect(x, height - 17, 1, 3);
      if (x + pen.measureText(text).width / 2 < width - 2) pen.fillText(text, Math.max(x - pen.measureText(text).width / 2, left), height - 7);
    }
    drawRanges();
  }
  function groupsInView() {
    let g0 = 0, g1 = groups.length;
    while (g0 < g1 && groupFirst[g0] + groups[g0] < rowView.start) g0++;
    while (g1 > g0 && groupFirst[g1 - 1] > rowView.end) g1--;
    return [g0, g1];
  }
  function drawPages(pen, c, g0, g1, left, scale, y, colour) {
    let drawn = -1, drawnRead = false;
    for (let g = g0; g < g1; g++) {
      const chunk = g * wide + c;
      if (chunks.size[chunk] < 0) {
        const x = left + (groupFirst[g] - rowView.start) * scale;
        pen.fillStyle = theme.soft;
        for (let k = 0; k < groups[g] * scale && k < 3000; k += 8) pen.fillRect(x + k, y + 8, 4, 3); // a broken line: not readable
        continue;
      }
      for (let p = firstPage[chunk]; p < firstPage[chunk + 1]; p++) {
        const x = left + (groupFirst[g] + pageFirst[p] - rowView.start) * scale, long = pages.rows[p] * scale;
        if (x + long < left || x > pen.canvas.width) continue;
        const pixel = Math.floor(x);
        if (long < 1.2) {
          const read = query && fate(p) === READ;
          if (pixel === drawn && (drawnRead || !read)) continue;
          pen.fillStyle = colour(p); pen.fillRect(pixel, y, 1.2, rowHeight - 4);
          drawn = pixel; drawnRead = read;
          continue;
        }
        const gap = long > 5 ? (p === firstPage[chunk + 1] - 1 ? 2 : 1) : 0;
        pen.fillStyle = colour(p);
        pen.fillRect(x, y, Math.max(long - gap, 1), rowHeight - 4);
        if (query && colouring !== "query" && fate(p) === READ) { pen.fillStyle = theme.ink; pen.fillRect(x, y + rowHeight - 7, Math.max(long - gap, 1), 3); }
      }
    }
  }

  // ---- one column

  const current = () => (order.length ? order[Math.min(cursor.row, order.length - 1)] : -1);
  function drawRanges() {
    const canvas = $("ranges"), c = current();
    if (c < 0 || columns[c].touched === undefined) { canvas.hidden = true; canvas.style.display = "none"; return; }
    canvas.style.display = "block";
    const [pen, width, height] = prepare(canvas), [left, right] = gutter();
    const scale = (width - left - right) / (rowView.end - rowView.start), low = 8, high = height - 8;
    pen.fillStyle = theme.soft;
    pen.fillText(clipped(pen, columns[c].max, left - 10), 0, low + 4);
    pen.fillText(clipped(pen, columns[c].min, left - 10), 0, high - 4);
    pen.fillStyle = theme.empty;
    pen.fillRect(left, low, width - left - right, high - low);
    pen.save();
    pen.beginPath(); pen.rect(left, low - 3, width - left - right, high - low + 6); pen.clip();
    const [g0, g1] = groupsInView(), byPage = columns[c].by === "page";
    const bar = (firstRow, rows, from, to, colour) => {
      if (from < 0) return;
      const x = left + (firstRow - rowView.start) * scale, long = Math.max(rows * scale - (rows * scale > 5 ? 1 : 0), 1);
      const y0 = high - (high - low) * to / 1000, y1 = high - (high - low) * from / 1000;
      pen.fillStyle = colour;
      pen.fillRect(x, y0 - 1, long, Math.max(y1 - y0, 0) + 2);
    };
    for (let g = g0; g < g1; g++) {
      const chunk = g * wide + c;
      if (!byPage) {
        const p = firstPage[chunk];
        bar(groupFirst[g], groups[g], of(chunks.low, chunk, -1), of(chunks.high, chunk, -1), query && p < firstPage[chunk + 1] ? fateColour(fate(p)) : "#0072B2");
        continue;
      }
      for (let p = firstPage[chunk]; p < firstPage[chunk + 1]; p++) {
        bar(groupFirst[g] + pageFirst[p], pages.rows[p], of(pages.low, p, -1), of(pages.high, p, -1), query ? (FATES[fate(p)][1] || theme.soft) : "#0072B2");
      }
    }
    pen.restore();
  }

  function verdict(c) {
    const column = columns[c];
    if (column.touched === undefined) return "The file has no bounds of this column that tell its pages apart.";
    const noun = column.by === "page" ? "page" : "row group", parts = column.parts;
    const touched = Math.max(Math.round(column.touched * parts), 1);
    const head = "Each bar is the range of values of one " + noun + ". A lookup of one value finds it possible in " + counted(touched, noun) + " of " + number(parts) + " (mean). ";
    if (parts < 3) return head + "With so few there is little to skip.";
    if (column.min === column.max) return head + "All values are equal.";
    if (column.touched * parts <= 1.5 || column.touched <= 0.05) return head + "The column is as good as sorted: bounds alone lead to the right place.";
    if (column.touched <= 0.3) return head + "Bounds help; sorting by this column would let a lookup skip still more.";
    return head + "Bounds hardly help. Sorting by this column would, where lookups by it matter; for single values a Bloom filter helps without sorting.";
  }

  function fact(list, name, value) {
    const box = element("div", undefined, list);
    element("dt", name, box);
    element("dd", value, box);
  }
  function showColumn() {
    const c = current(), list = $("column-facts");
    list.replaceChildren();
    if (c < 0) { $("column-title").textContent = wide ? "No column has such a name" : "The file has no columns"; $("verdict").textContent = ""; $("ranges").style.display = "none"; return; }
    $("column-title").textContent = "Column " + columns[c].name;
    let pageSum = 0, dictionary = 0, bloom = 0, index = 0, nulls = 0, nullsKnown = true, read = 0, note = "";
    const codecs = new Set(), encodings = new Set();
    for (let g = 0; g < groups.length; g++) {
      const k = g * wide + c;
      if (chunks.size[k] < 0) { note = note || of(chunks.note, k, null); continue; }
      pageSum += of(chunks.pages, k, 0); dictionary += of(chunks.dictionary, k, 0); bloom += of(chunks.bloomSize, k, 0);
      index += of(chunks.columnIndexSize, k, 0) + of(chunks.offsetIndexSize, k, 0);
      if (of(chunks.nulls, k, null) === null) nullsKnown = false; else nulls += chunks.nulls[k];
      if (of(chunks.codec, k, "")) codecs.add(chunks.codec[k]);
      if (of(chunks.encoding, k, "")) encodings.add(chunks.encoding[k]);
      for (let p = firstPage[k]; p < firstPage[k + 1]; p++) if (fate(p) === READ) read += pages.size[p];
    }
    $("verdict").textContent = note ? note : verdict(c);
    fact(list, "type", columns[c].type);
    fact(list, "stored", size(columnBytes[c]) + ", " + share(columnBytes[c], total) + " of the file");
    fact(list, "uncompressed", size(columnRaw[c]) + (columnBytes[c] ? ", ratio " + (columnRaw[c] / columnBytes[c]).toFixed(1) : ""));
    fact(list, "codec", [...codecs].join(", ") || "none");
    fact(list, "encodings of data pages", [...encodings].slice(0, 4).join(", ") || "not known");
    fact(list, "data pages", number(pageSum) + (dictionary ? ", dictionaries of " + size(dictionary) : ""));
    if (nullsKnown && groups.length) fact(list, "nulls", number(nulls));
    fact(list, "Bloom filters", bloom ? size(bloom) : "none");
    fact(list, "page index", index ? size(index) : "none");
    if (query) fact(list, "read by the query", size(read));
  }

  // ---- tooltips

  const tip = $("tip");
  function tell(title, rows, x, y) {
    tip.replaceChildren();
    element("b", title, tip);
    const table = element("table", undefined, tip);
    for (const [name, value] of rows) {
      if (value === undefined || value === null || value === "") continue;
      const row = element("tr", undefined, table);
      element("td", name, row);
      element("td", value, row);
    }
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(Math.min(x + 14, innerWidth - box.width - 8), 8) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(y - box.height - 12, 8) : y + 18) + "px";
    $("say").textContent = title + ": " + rows.filter((r) => r[1]).map((r) => r.join(" ")).join(", ");
  }
  const quiet = () => { tip.hidden = true; };

  function chunkTitle(c) {
    const g = groupOf(c), f = groupFile[g], column = columns[columnOf(c)].name;
    return column + ", " + (files.length > 1 ? files[f].name + ", " : "") + "row group " + (g - localFirst[f]);
  }
  function pageRows(p) {
    const c = pageChunk[p], how = of(chunks.known, c, 0), first = pageFirst[p], base = groupFirst[groupOf(c)];
    const low = of(pages.min, p, null) ?? of(chunks.min, c, null), high = of(pages.max, p, null) ?? of(chunks.max, c, null);
    const ofChunk = of(pages.min, p, null) === null && low !== null ? " (of the column chunk)" : "";
    return [
      ["", query ? FATES[fate(p)][0] : ""],
      ["rows", number(pages.rows[p]) + " from row " + number(base + first) + (how === 3 ? ", estimated" : "")],
      ["bytes", size(pages.size[p]) + " at " + number(pageOffset[p])],
      ["encoding", encodingOf(p)],
      ["codec", of(chunks.codec, c, "")],
      ["ratio", ratioOf(p).toFixed(2) + (of(pages.raw, p, -1) > 0 ? "" : " (of the column chunk)")],
      ["values", low === null ? "" : low + " to " + high + ofChunk],
      ["nulls", of(pages.nulls, p, -1) >= 0 ? number(pages.nulls[p]) : ""],
      ["pages", how === 0 ? (of(chunks.pages, c, 1) > 1 ? number(chunks.pages[c]) + ", drawn as one" : "not known: no OffsetIndex") : ""],
    ];
  }
  const pageTitle = (p) => chunkTitle(pageChunk[p]) + (of(chunks.known, pageChunk[p], 0) ? ", page " + (p - firstPage[pageChunk[p]]) : "");
  function tellSegment(s, x, y) {
    const kind = segKind[s], c = segOf[s];
    if (kind === 0) return tell(pageTitle(c), pageRows(c), x, y);
    if (kind === 5) return tell("Footer" + (files.length > 1 ? " of " + files[c].name : ""), [["bytes", size(segSize[s]) + " at " + number(files[c].footer)], ["", "schema, and place, sizes and statistics of every column chunk"]], x, y);
    const base = fileBase[groupFile[groupOf(c)]];
    return tell(PARTS[kind - 1][0] + " of " + chunkTitle(c), [
      ["bytes", size(segSize[s]) + " at " + number(segStart[s] - base)],
      ["", query ? (wasRead(s) ? (kind === 2 ? "asked" : "read") : "not read") : ""],
    ], x, y);
  }

  // ---- mouse, touch and keys

  function place(canvas, event) { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; }
  const atByte = (x) => byteView.start + x / $("bytes").clientWidth * (byteView.end - byteView.start);
  const atRow = (x) => { const [left, right] = gutter(); return rowView.start + (x - left) / ($("grid").clientWidth - left - right) * (rowView.end - rowView.start); };

  function segmentAt(at) {
    const slack = (byteView.end - byteView.start) / $("bytes").clientWidth * 2;
    let s = lowerBound(segStart, at + 1e-9, segCount) - 1;
    if (s >= 0 && at < segStart[s] + segSize[s]) return s;
    for (const k of [s, s + 1]) if (k >= 0 && k < segCount && at > segStart[k] - slack && at < segStart[k] + segSize[k] + slack) return k;
    return -1;
  }
  function pageAt(c, row) {
    let g = groups.length - 1;
    while (g > 0 && groupFirst[g] > row) g--;
    if (g < 0 || row < 0 || row >= allRows) return -1;
    const chunk = g * wide + c;
    for (let p = firstPage[chunk]; p < firstPage[chunk + 1]; p++) if (row < groupFirst[g] + pageFirst[p] + pages.rows[p]) return p;
    return firstPage[chunk + 1] > firstPage[chunk] ? firstPage[chunk + 1] - 1 : -1;
  }

  let waiting = 0;
  const redraw = () => { if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; drawBytes(); drawGrid(); }); };

  function panZoom(canvas, view, end, at, span) {
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, start: view.start, end: view.end, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag || Math.abs(event.clientX - drag.x) < 4 && !drag.moved) return;
      drag.moved = true;
      const shift = (drag.x - event.clientX) / span() * (drag.end - drag.start);
      view.start = drag.start + shift; view.end = drag.end + shift;
      clamp(view, end); quiet(); redraw();
    });
    const stop = () => { drag = null; };
    canvas.addEventListener("pointerup", stop);
    canvas.addEventListener("pointercancel", stop);
    canvas.addEventListener("dblclick", (event) => { zoom(view, end, 0.4, at(place(canvas, event)[0])); redraw(); });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(view, end, event.deltaY > 0 ? 1.25 : 0.8, at(place(canvas, event)[0]));
      redraw();
    }, { passive: false });
    canvas.addEventListener("pointerleave", quiet);
    canvas.addEventListener("blur", quiet);
  }
  function zoomKey(key, view, end, middle) {
    if (key === "+" || key === "=") zoom(view, end, 0.5, middle);
    else if (key === "-" || key === "_") zoom(view, end, 2, middle);
    else if (key === "0") { view.start = 0; view.end = Math.max(end, 1); }
    else return false;
    redraw();
    return true;
  }
  function reveal(view, end, low, high) {
    const width = view.end - view.start;
    if (low < view.start || high > view.end) { view.start = (low + high) / 2 - width / 2; view.end = view.start + width; clamp(view, end); }
  }

  const bytesCanvas = $("bytes"), grid = $("grid"), scroller = $("scroller");
  panZoom(bytesCanvas, byteView, total, atByte, () => bytesCanvas.clientWidth);
  panZoom(grid, rowView, allRows, atRow, () => { const [l, r] = gutter(); return grid.clientWidth - l - r; });
  bytesCanvas.addEventListener("pointermove", (event) => {
    if (event.buttons) return;
    const s = segmentAt(atByte(place(bytesCanvas, event)[0]));
    if (s < 0) quiet(); else tellSegment(s, event.clientX, event.clientY);
  });
  bytesCanvas.addEventListener("click", (event) => {
    const s = segmentAt(atByte(place(bytesCanvas, event)[0]));
    if (s >= 0) { byteCursor = s; tellSegment(s, event.clientX, event.clientY); drawBytes(); }
  });
  bytesCanvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -segCount, End: segCount };
    const middle = byteCursor >= 0 ? segStart[byteCursor] + segSize[byteCursor] / 2 : (byteView.start + byteView.end) / 2;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps && segCount) {
      byteCursor = Math.min(Math.max((byteCursor < 0 ? -1 : byteCursor) + steps[event.key], 0), segCount - 1);
      reveal(byteView, total, segStart[byteCursor], segStart[byteCursor] + segSize[byteCursor]);
      drawBytes();
      const box = bytesCanvas.getBoundingClientRect();
      const x = (segStart[byteCursor] - byteView.start) / (byteView.end - byteView.start) * box.width;
      tellSegment(byteCursor, box.left + Math.max(x, 0), box.top + 60);
    } else if (event.key === "Escape") quiet();
    else if (!zoomKey(event.key, byteView, total, middle)) return;
    event.preventDefault();
  });
  const overview = $("overview");
  const jump = (event) => {
    const at = place(overview, event)[0] / overview.clientWidth * total, width = byteView.end - byteView.start;
    byteView.start = at - width / 2; byteView.end = at + width / 2;
    clamp(byteView, total); redraw();
  };
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); jump(event); });
  overview.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });

  const rowAt = (y) => Math.floor((y + scroller.scrollTop) / rowHeight);
  grid.addEventListener("pointermove", (event) => {
    if (event.buttons) return;
    const [x, y] = place(grid, event), r = rowAt(y), [left] = gutter();
    if (r >= order.length || y > grid.clientHeight - 17) return quiet();
    const c = order[r], p = x < left ? -1 : pageAt(c, atRow(x));
    if (p >= 0) tell(pageTitle(p), pageRows(p), event.clientX, event.clientY);
    else if (x < left) tell(columns[c].name, [["type", columns[c].type], ["stored", size(columnBytes[c])]], event.clientX, event.clientY);
    else quiet();
  });
  grid.addEventListener("click", (event) => {
    const [x, y] = place(grid, event), r = rowAt(y), [left] = gutter();
    if (r >= order.length || y > grid.clientHeight - 17) return;
    cursor = { row: r, page: x < left ? -1 : pageAt(order[r], atRow(x)) };
    if (cursor.page >= 0) tell(pageTitle(cursor.page), pageRows(cursor.page), event.clientX, event.clientY);
    drawGrid(); showColumn();
  });
  grid.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !order.length) return;
    const down = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 }, across = { ArrowLeft: -1, ArrowRight: 1 };
    const rowOf = (p) => groupFirst[groupOf(pageChunk[p])] + pageFirst[p] + pages.rows[p] / 2;
    const middle = cursor.page >= 0 ? rowOf(cursor.page) : (rowView.start + rowView.end) / 2;
    if (event.key in down) {
      cursor.row = Math.min(Math.max(cursor.row + down[event.key], 0), order.length - 1);
      cursor.page = pageAt(order[cursor.row], cursor.page >= 0 ? middle : rowView.start);
    } else if (event.key in across) {
      cursor.page = cursor.page < 0 ? pageAt(current(), rowView.start) : nextPage(cursor.page, across[event.key]);
    } else if (event.key === "Home") cursor.page = pageAt(current(), 0);
    else if (event.key === "End") cursor.page = pageAt(current(), allRows - 1);
    else if (event.key === "Escape") { quiet(); return; }
    else if (zoomKey(event.key, rowView, allRows, middle)) { event.preventDefault(); return; }
    else return;
    event.preventDefault();
    showCursor();
  });
  function nextPage(p, step) {
    let chunk = pageChunk[p], next = p + step;
    if (next >= firstPage[chunk] && next < firstPage[chunk + 1]) return next;
    for (chunk += step * wide; chunk >= 0 && chunk < chunkCount; chunk += step * wide) {
      if (firstPage[chunk + 1] > firstPage[chunk]) return step > 0 ? firstPage[chunk] : firstPage[chunk + 1] - 1;
    }
    return p;
  }
  function showCursor() {
    const y = cursor.row * rowHeight, p = cursor.page;
    if (y < scroller.scrollTop) scroller.scrollTop = y;
    const room = grid.clientHeight - 20;
    if (y + rowHeight > scroller.scrollTop + room) scroller.scrollTop = y + rowHeight - room;
    if (p >= 0) {
      const start = groupFirst[groupOf(pageChunk[p])] + pageFirst[p];
      reveal(rowView, allRows, start, start + pages.rows[p]);
    }
    drawGrid(); showColumn();
    if (p < 0) return quiet();
    const box = grid.getBoundingClientRect(), [left, right] = gutter();
    const x = left + (groupFirst[groupOf(pageChunk[p])] + pageFirst[p] - rowView.start) / (rowView.end - rowView.start) * (box.width - left - right);
    tell(pageTitle(p), pageRows(p), box.left + Math.max(x, left), box.top + y - scroller.scrollTop + 12);
  }
  scroller.addEventListener("scroll", () => { quiet(); redraw(); });

  for (const box of document.querySelectorAll(".buttons")) {
    const isBytes = box.dataset.for === "bytes", view = isBytes ? byteView : rowView, end = isBytes ? total : allRows;
    for (const [text, key, name] of [["−", "-", "zoom out"], ["+", "+", "zoom in"], ["all", "0", "show everything"]]) {
      const button = element("button", text, box);
      button.type = "button"; button.setAttribute("aria-label", name); button.title = name;
      button.addEventListener("click", () => zoomKey(key, view, end, (view.start + view.end) / 2));
    }
  }

  // ---- words

  function legend(list, items) {
    list.replaceChildren();
    for (const [text, colour, isRamp] of items) {
      const item = element("li", undefined, list), box = element("i", undefined, item);
      box.style.background = colour;
      if (isRamp) box.className = "ramp";
      item.append(text);
    }
  }
  const present = () => { const seen = new Set(); for (let p = 0; p < pageCount; p++) seen.add(fate(p)); return [...seen].sort((a, b) => a - b); };
  function legends() {
    const kinds = new Set(segKind);
    const parts = PARTS.filter((_, k) => kinds.has(k + 1));
    const fates = query ? present().map((f) => [FATES[f][0], fateColour(f)]) : [];
    legend($("bytes-legend"), [
      ...(query ? fates : [["data pages (two shades tell columns apart)", "linear-gradient(90deg," + DATA[0] + " 50%," + DATA[1] + " 50%)"]]),
      ...parts, ...(query ? [["requests: the line below", "#D55E00"]] : []),
    ]);
    const bar = "linear-gradient(90deg," + [0, 0.25, 0.5, 0.75, 1].map(ramp).join(",") + ")";
    const seen = new Set(); for (let p = 0; p < pageCount; p++) seen.add(encodingColour(p));
    legend($("grid-legend"), {
      query: fates, encoding: ENCODINGS.filter((e) => seen.has(e[2])).map((e) => [e[0], e[2]]),
      ratio: [["not compressed … 20 times smaller", bar, true]], density: [["0.01 … " + densest.toPrecision(3) + " bytes per row", bar, true]],
    }[colouring]);
  }

  function words() {
    document.title = "Map of " + doc.name;
    $("name").textContent = doc.name;
    const makers = [...new Set(files.map((f) => f.createdBy).filter(Boolean))];
    $("facts").textContent = [
      files.length > 1 ? counted(files.length, "file") : "", counted(allRows, "row"), counted(groups.length, "row group"), counted(wide, "column"),
      counted((chunks.pages || []).reduce((a, b) => a + b, 0), "data page"), size(total), makers.length ? "written by " + makers.slice(0, 2).join(" and ") : "",
    ].filter(Boolean).join(" · ");
    const select = $("colour");
    for (const [key, [text]] of Object.entries(COLOURS)) { element("option", text, select).value = key; }
    select.value = colouring;
    select.addEventListener("change", () => { colouring = select.value; legends(); drawGrid(); });
    $("order").addEventListener("change", arrange);
    $("find").addEventListener("input", arrange);
    if (wide < 12) $("find").parentElement.hidden = true;
    if (query) askedWords();
  }
  function askedWords() {
    $("query").hidden = false;
    const names = query.columns.length > 12 ? query.columns.slice(0, 12).join(", ") + ", …" : query.columns.join(", ");
    $("filter").textContent = "select " + (names || "(no column)") + " where " + query.predicate;
    let read = 0;
    for (let p = 0; p < pageCount; p++) if (fate(p) === READ) read++;
    const card = (big, small) => { const box = element("div", undefined, $("cards")); box.className = "card"; element("b", big, box); element("span", small, box); };
    card(size(query.bytes_fetched), share(query.bytes_fetched, total) + " of " + size(total) + " read");
    card(number(query.requests), query.requests === 1 ? "request" : "requests");
    card(number(query.pages_decoded), "of " + number((chunks.pages || []).reduce((a, b) => a + b, 0)) + " pages decoded");
    if (query.rows !== null) card(number(query.rows), "of " + number(allRows) + " rows match");
    const body = $("stages").querySelector("tbody");
    const colour = { statistics: 2, "bloom filter": 3, dictionary: 4, "column index": 5 };
    for (const stage of query.stages) {
      const row = element("tr", undefined, body);
      element("td", stage.name, row);
      element("td", number(stage.rows_after), row);
      const rail = element("span", undefined, element("td", undefined, row));
      rail.className = "rail";
      const bar = element("i", undefined, rail);
      bar.style.width = 100 * stage.rows_after / Math.max(allRows, 1) + "%";
      bar.style.background = FATES[colour[stage.name] || 10][1];
      element("td", number(stage.row_groups_before) + " → " + number(stage.row_groups_after), row);
      element("td", stage.pages_before ? number(stage.pages_before) + " → " + number(stage.pages_after) : "", row);
      element("td", stage.bytes ? size(stage.bytes) : "0", row);
    }
    if (!query.stages.length) $("stages").hidden = true;
  }

  readTheme();
  words();
  legends();
  arrange();
  drawBytes();
  if (window.ResizeObserver) new ResizeObserver(redraw).observe($("spacer"));
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => { readTheme(); legends(); redraw(); });
  document.body.dataset.ready = "yes";
  document.body.dataset.parts = String(segCount);
})();
