// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/html_style.h"

namespace cli {

const char* const kHtmlStyle = R"css(:root {
  color-scheme: light dark;
  --page: #fcfcfb; --ink: #1b1b1a; --quiet: #5f5e59; --line: #dddbd4; --tile: #f3f2ee;
  --share: #cfe0f6; --f0: #f7e4c8; --f1: #f4d9b4; --f2: #f1cfa6; --rest: #e4e2dc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #1a1a19; --ink: #ecebe6; --quiet: #a9a79f; --line: #3b3a37; --tile: #262623;
    --share: #24415f; --f0: #4a3c29; --f1: #54432c; --f2: #5e4a2f; --rest: #383733;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 1.25rem; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
article + article { margin-top: 4rem; border-top: 3px solid var(--line); }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0 0 .35rem; }
.caps { text-transform: lowercase; }
.caps::first-letter { text-transform: uppercase; }
section { margin-top: 2rem; }
p { margin: .3rem 0; }
pre, code, .head { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.head { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem; }
.note { color: var(--quiet); font-size: .87rem; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: .75rem;
  margin-top: 1rem; }
.tile { background: var(--tile); border-radius: 6px; padding: .7rem .9rem; }
.tile span, .tile small { display: block; color: var(--quiet); font-size: .82rem; }
.tile strong { font-size: 1.5rem; font-weight: 600; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.2rem; font-size: .85rem; margin: .5rem 0; }
.legend b { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .4em; }
.legend em { font-style: normal; color: var(--quiet); }
.bar { display: flex; gap: 2px; height: 26px; border-radius: 4px; overflow: hidden; margin-top: .6rem; }
.bar div { min-width: 2px; }
.w-replayed, .k-sync { background: #256abf; color: #fff; }
.w-queued, .k-copy { background: #b8501f; color: #fff; }
.w-direct, .k-alloc { background: #8a5d00; color: #fff; }
.w-pending, .k-other { background: #68665f; color: #fff; }
.k-query { background: #147a55; color: #fff; }
.f0 { background: var(--f0); } .f1 { background: var(--f1); } .f2 { background: var(--f2); }
.rest { background: var(--rest); }
.flame { position: relative; overflow: hidden; }
.box { position: absolute; height: 20px; text-indent: 5px; font-size: 12px; line-height: 20px;
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis; border-right: 1px solid var(--page);
  border-radius: 2px; }
.box i { font-style: normal; opacity: .75; }
.box[tabindex] { cursor: pointer; }
.box[tabindex]:hover, .box:focus-visible { outline: 2px solid var(--ink); outline-offset: -2px; }
.box.outer { opacity: .55; }
.detail { min-height: 4.4em; white-space: pre-line; font-size: .85rem; color: var(--quiet);
  overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .4rem 0; font-size: .87rem;
  font-variant-numeric: tabular-nums; }
th { font-weight: 600; color: var(--quiet); }
th, td { text-align: right; padding: .22rem .6rem; white-space: nowrap; vertical-align: top; }
thead th, thead td { border-bottom: 1px solid var(--quiet); }
tbody td { border-bottom: 1px solid var(--line); }
.l { text-align: left; }
.narrow { width: auto; }
tr > .l:last-child { white-space: normal; overflow-wrap: anywhere; width: 100%; min-width: 16rem; }
tr > :first-child { padding-left: .3rem; }
.share { background: linear-gradient(var(--share), var(--share)) no-repeat left / 0 100%;
  min-width: 4.5rem; }
summary { cursor: pointer; }
details pre { margin: .3rem 0; color: var(--quiet); overflow-x: auto; font-size: .8rem; }
@media print { .detail { display: none; } }
)css";

// A click on a box makes it as wide as the graph: what lies in it grows, what holds it pales.
const char* const kHtmlScript = R"js(
'use strict';
for (const flame of document.querySelectorAll('.flame')) {
  const detail = flame.parentElement.querySelector('.detail');
  const boxes = Array.from(flame.children, (box) => ({
    box, left: parseFloat(box.style.left), width: parseFloat(box.style.width),
    top: parseFloat(box.style.top), text: box.title}));
  const hint = 'Point at a box for its numbers; click it to enlarge it, and the top one to go back.';
  const show = (text) => { detail.textContent = text; };
  const zoom = (to) => {
    const end = to.left + to.width, slack = 1e-3;
    for (const one of boxes) {
      const isOuter = one.top < to.top && one.left <= to.left + slack && one.left + one.width >= end - slack;
      const isInner = one.top >= to.top && one.left >= to.left - slack && one.left + one.width <= end + slack;
      one.box.hidden = !isOuter && !isInner;
      one.box.classList.toggle('outer', isOuter);
      one.box.style.left = (isInner ? 100 * (one.left - to.left) / to.width : 0) + '%';
      one.box.style.width = (isInner ? 100 * one.width / to.width : 100) + '%';
    }
  };
  detail.hidden = false;
  show(hint);
  flame.addEventListener('mouseleave', () => show(hint));
  for (const one of boxes) {
    one.box.tabIndex = 0;
    one.box.setAttribute('role', 'button');
    one.box.removeAttribute('title');
    one.box.setAttribute('aria-label', one.text);
    one.box.addEventListener('mouseenter', () => show(one.text));
    one.box.addEventListener('focus', () => show(one.text));
    one.box.addEventListener('click', () => zoom(one));
    one.box.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      zoom(one);
    });
  }
}
)js";

const char* const kHtmlScriptHash = "ko8gYgDQEQhGjMEJECDIT7VulXwkiOUUcRDObIF0ozY=";

}  // namespace cli
