"""How a trial's page looks, and what it does when a token is pointed at, touched or reached by keys."""

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --faint: #57606a; --line: #d8dee4; --context: #f4f6f8;
  --link: #0b5cad; --mark: #b3261e; --good: #1a7f37; --bad: #b3261e; --card: #fff;
  --p0: #d3eedb; --p1: #e7efb4; --p2: #fde79a; --p3: #fbc58c; --p4: #f59a8e; }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe5eb; --paper: #14171b; --faint: #9aa4ae; --line: #343b43;
  --context: #1c2127; --link: #7ab8f5; --mark: #ff8a80; --good: #5fd07a; --bad: #ff8a80; --card: #22282f;
  --p0: #12382a; --p1: #33471a; --p2: #5a4b0c; --p3: #76400f; --p4: #8a261c; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 4.5rem; }
body { margin: 0 auto; padding: 1.2rem 1.2rem 6rem; max-width: 70rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0; overflow-wrap: anywhere; }
h1 small { font-weight: normal; color: var(--faint); }
h2 { font-size: 1rem; margin: 0; display: inline; }
.badges { margin: .5rem 0 1rem; display: flex; flex-wrap: wrap; gap: .4rem; }
.badges span, h2 b { display: inline-block; padding: .05rem .6rem; border: 1px solid var(--line); border-radius: 1rem;
  font-size: .85rem; font-weight: normal; color: var(--faint); }
h2 b { margin-left: .3rem; }
.badges .good { color: var(--good); border-color: currentColor; }
.badges .bad, .edge, .retokenized, .restart, .anew { color: var(--mark) !important; border-color: currentColor !important; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0 0 1rem; font-size: .9rem; }
dt { color: var(--faint); }
dd { margin: 0; overflow-wrap: anywhere; }
@media (min-width: 60rem) { dl { grid-template-columns: max-content 1fr max-content 1fr; } }
.legend { position: sticky; top: 0; z-index: 1; margin: 0 -1.2rem; padding: .45rem 1.2rem; background: var(--paper);
  border-bottom: 1px solid var(--line); font-size: .85rem; color: var(--faint); display: flex; flex-wrap: wrap; gap: .2rem .9rem; }
@media (max-width: 60rem) { .legend { position: static; } html { scroll-padding-top: .5rem; } }
.legend i { display: inline-block; padding: 0 .4rem; color: var(--ink); }
.legend b { padding: 0 .3rem; border: 1px solid var(--line); border-radius: .25rem; font-weight: normal; color: var(--link); }
.legend .context { padding: 0 .4rem; background: var(--context); }
nav { display: flex; flex-wrap: wrap; gap: .2rem; margin: .8rem 0; padding: 2px; max-height: 9rem; overflow: auto;
  font-size: .8rem; }
nav a { min-width: 1.8rem; padding: 0 .3rem; text-align: center; text-decoration: none; border: 1px solid var(--line);
  border-radius: .25rem; color: var(--link); }
nav a:hover, nav a:focus { outline: 2px solid var(--link); }
nav a.restart, .legend .restart { margin-left: .8rem; }
.turn { border-top: 1px solid var(--line); padding: .6rem 0; content-visibility: auto; contain-intrinsic-size: auto 18rem; }
.more { margin-top: .3rem; color: var(--faint); font-size: .85rem; }
summary { cursor: pointer; }
p { margin: .5rem 0 .2rem; color: var(--faint); font-size: .85rem; overflow-wrap: anywhere; }
pre { margin: 0; padding: .5rem .7rem; min-height: 2rem; max-height: 22rem; overflow: auto; border-radius: .3rem;
  background: var(--context); white-space: pre-wrap; overflow-wrap: anywhere; font: .85rem/1.7 ui-monospace, monospace; }
pre.sampled { background: none; border: 1px solid var(--line); border-left: 4px solid var(--link); }
pre:focus-visible, summary:focus-visible { outline: 2px solid var(--link); }
i { font-style: normal; }
.sampled i { box-shadow: inset 1px 0 var(--paper); }
i.n::before { content: "↵"; color: var(--faint); }
i.r { border-bottom: 2px dashed var(--mark); }
i.h { outline: 1px solid var(--faint); outline-offset: -1px; }
i.at, pre i:hover { outline: 2px solid var(--ink); outline-offset: -1px; }
.p0 { background: var(--p0); }
.p1 { background: var(--p1); }
.p2 { background: var(--p2); }
.p3 { background: var(--p3); }
.p4 { background: var(--p4); }
#tip { position: fixed; z-index: 2; max-width: min(34rem, calc(100vw - 1rem)); max-height: 50vh; overflow: auto;
  padding: .5rem .8rem; background: var(--card); border: 1px solid var(--line); border-radius: .4rem;
  box-shadow: 0 4px 16px #0005; font-size: .85rem; }
#tip[hidden] { display: none; }
#tip table { border-spacing: 0; }
#tip th { padding-right: .8rem; font-weight: normal; text-align: left; vertical-align: top; white-space: nowrap;
  color: var(--faint); }
#tip td { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
@media print {
  :root { color-scheme: light; --ink: #000; --paper: #fff; --faint: #444; --context: #f4f6f8; --line: #bbb; --link: #0b5cad;
    --mark: #b3261e; --good: #1a7f37; --p0: #d3eedb; --p1: #e7efb4; --p2: #fde79a; --p3: #fbc58c; --p4: #f59a8e; }
  body { padding: 0; max-width: none; font-size: 10pt; }
  i, pre, .context { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  nav, #tip, .keys, .strip { display: none; }
  .legend { position: static; }
  pre { max-height: none; overflow: visible; }
  .turn { content-visibility: visible; }
  summary { break-after: avoid; }
}
"""

SCRIPT = """
const tip = document.getElementById("tip");
let at = null;
const list = (block, name) => block["_" + name] ??= (block.dataset[name] ?? "").split(" ");
function experts(block, index) {
  const [layers, k, size] = (block.dataset.shape ?? "0 0 1").split(" ").map(Number);
  const bytes = block._experts ??= Uint8Array.from(atob(block.dataset.experts ?? ""), each => each.charCodeAt(0));
  const read = place => size === 1 ? bytes[place] : bytes[2 * place] + 256 * bytes[2 * place + 1];
  if (!layers || (index + 1) * layers * k * size > bytes.length) return [];
  return Array.from({length: layers}, (_, layer) => [`experts, layer ${layer}`,
    Array.from({length: k}, (_, slot) => read((index * layers + layer) * k + slot)).join(" ")]);
}
function facts(token) {
  const block = token.parentElement, index = [...block.children].indexOf(token), rows = [];
  rows.push(["token", token.dataset.name ?? JSON.stringify(token.textContent)], ["id", list(block, "ids")[index]]);
  const logprob = list(block, "logprobs")[index], equal = list(block, "equal")[index];
  if (logprob) rows.push(["probability", Math.exp(logprob).toPrecision(3)], ["log-probability", logprob + " nats"]);
  if (equal) rows.push(["experts equal", equal + " %"]);
  if (token.classList.contains("r")) rows.push(["experts", "substituted: those of the token before"]);
  if (token.classList.contains("h")) rows.push(["placeholder", "put in by the harness"]);
  return rows.concat(experts(block, index));
}
function show(token) {
  hide();
  at = token;
  token.classList.add("at");
  const table = document.createElement("table");
  for (const [name, value] of facts(token)) {
    const row = table.insertRow(), head = document.createElement("th");
    head.textContent = name;
    row.append(head);
    row.insertCell().textContent = value;
  }
  tip.replaceChildren(table);
  tip.hidden = false;
  const place = [...token.getClientRects()].at(-1) ?? token.getBoundingClientRect(), card = tip.getBoundingClientRect();
  const below = place.bottom + 6 + card.height < innerHeight;
  tip.style.left = Math.max(8, Math.min(place.left, innerWidth - card.width - 8)) + "px";
  tip.style.top = Math.max(8, below ? place.bottom + 6 : place.top - card.height - 6) + "px";
}
function hide() {
  at?.classList.remove("at");
  at = null;
  tip.hidden = true;
}
const isToken = each => each instanceof Element && each.matches("pre > i");
document.addEventListener("pointerover", event => { if (isToken(event.target)) show(event.target); });
document.addEventListener("click", event => isToken(event.target) ? show(event.target) : hide());
document.addEventListener("pointerout", event => { if (event.target === at && event.pointerType === "mouse") hide(); });
document.addEventListener("scroll", () => { if (at && document.activeElement !== at.parentElement) hide(); }, true);
document.addEventListener("keydown", event => {
  const block = document.activeElement, turns = [...document.querySelectorAll(".turn")];
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") hide();
  if (event.key === "j" || event.key === "k") {
    const here = turns.findIndex(each => each.contains(block));
    const next = turns[Math.max(0, Math.min(turns.length - 1, here + (event.key === "j" ? 1 : -1)))];
    next?.querySelector("summary").focus();
    next?.scrollIntoView();
  }
  if (!block?.matches("pre") || !block.children.length) return;
  const inside = at?.parentElement === block, last = block.children.length - 1;
  const index = inside ? [...block.children].indexOf(at) : -1;
  const to = {ArrowRight: Math.min(last, index + 1), ArrowLeft: Math.max(0, index - 1), Home: 0, End: last}[event.key];
  if (to === undefined) return;
  event.preventDefault();
  block.children[to].scrollIntoView({block: "nearest"});
  show(block.children[to]);
});
if (location.hash) document.querySelector(location.hash)?.scrollIntoView();
"""
